//! Advice for calls of flang's run-time library without derivatives. Names the Fortran construct behind the
//! call and a replacement, because Fortran users cannot supply the library's source.

/// Returns the advice for a function; `None` for functions outside flang's run-time library.
pub(crate) fn flang_advice(name: &str) -> Option<String> {
    let what = name.strip_prefix("_FortranA")?;
    let begins = |list: &[&str]| list.iter().any(|first| what.starts_with(first));
    let known = if begins(&["Assign", "CopyInAssign", "CopyOutAssign"]) {
        "the call implements an assignment of a whole array or of a derived type: assign element by element and component by component"
    } else if begins(&["InitArrayConstructor", "PushArrayConstructor"]) {
        "the call implements an array constructor: allocate the array, and assign the elements one by one"
    } else if begins(&["Initialize", "Destroy", "Finalize"]) {
        "the call initialises or finalises a variable of a derived type with polymorphic components, with final procedures, or with allocatable components of a derived type: declare components with `type` instead of `class`, and store the numbers of such arrays in separate arrays"
    } else if begins(&["Pointer"]) {
        "the call works on a `pointer` that is polymorphic, has the type `character`, or has a descriptor of unknown contents: declare the pointer with `type` and allocate without `errmsg`, or declare the variable `allocatable`"
    } else if begins(&["Allocatable", "MoveAlloc"]) {
        "the call works on an `allocatable` variable that is polymorphic, has unknown components, or is a dummy argument of a function without a call in the same file: declare the variable with `type`, allocate without `errmsg`, and compile the callers together with this function"
    } else {
        return Some(format!(
            "the call implements an intrinsic procedure or an operation on whole arrays (`{what}`): write the operation element by element in a loop"
        ));
    };
    Some(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::flang_advice;

    #[test]
    fn advice_names_the_fortran_construct() {
        for (name, says) in [
            ("_FortranAAssignTemporary", "assign element by element"),
            ("_FortranAPushArrayConstructorValue", "array constructor"),
            ("_FortranADestroy", "derived type"),
            ("_FortranAPointerAllocate", "`allocatable`"),
            ("_FortranASpread", "(`Spread`)"),
        ] {
            let said = flang_advice(name).unwrap_or_default();
            assert!(said.contains(says), "{name}: {said}");
        }
        assert_eq!(flang_advice("FortranAssign"), None);
    }
}
