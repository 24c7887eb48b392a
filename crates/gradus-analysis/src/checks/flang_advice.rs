//! Advice for calls of flang's run-time library without derivatives. Names the Fortran construct behind the
//! call and a replacement, because Fortran users cannot supply the library's source.

/// Returns the advice for a function; `None` for functions outside flang's run-time library.
pub(crate) fn flang_advice(name: &str) -> Option<String> {
    let what = name.strip_prefix("_FortranA")?;
    let begins = |list: &[&str]| list.iter().any(|first| what.starts_with(first));
    let known = if begins(&["Assign", "CopyInAssign", "CopyOutAssign"]) {
        "it carries out an assignment of a whole array or of a derived type: assign element by element, and component by component"
    } else if begins(&["InitArrayConstructor", "PushArrayConstructor"]) {
        "it builds an array constructor: allocate the array, and assign its elements one by one"
    } else if begins(&["Initialize", "Destroy", "Finalize"]) {
        "it makes or ends a variable of a derived type with polymorphic components, with final procedures, or with allocatable components of a derived type: declare components by `type`, not `class`, and keep the numbers of such arrays in arrays of their own"
    } else if begins(&["Pointer"]) {
        "it works on a `pointer` that is polymorphic, of characters, or not described where the statement stands: declare it by `type`, without `errmsg` where it is allocated, or declare it `allocatable`"
    } else if begins(&["Allocatable", "MoveAlloc"]) {
        "it works on an `allocatable` variable that is polymorphic, has components that are not known, or is a dummy argument of a function that is not called in the same file: declare it by `type`, without `errmsg` where it is allocated, and compile its callers together with it"
    } else {
        return Some(format!(
            "it carries out an intrinsic procedure or an operation on whole arrays (`{what}`): write that element by element in a loop"
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
