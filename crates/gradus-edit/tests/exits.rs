//! Exit branches of loops and their conditions in the last iteration.

use gradus_edit::{exit_branch, expose_exit_conditions};
use gradus_ir::{Op, OpKind, Unit, parse, verify_function};

/// Loop with two exits and a test at the bottom, plus a branch that does not leave the loop.
const TWO_EXITS: &str = "func @f(%n: i64, %a: f64) -> f64 {
  %r = loop iter(%i = 0, %x = %a) -> f64 {
    %c = fcmp ogt %x, 9.0
    %more, %v = if %c -> i1, f64 {
      yield false, %x
    } else {
      %y = fmul %x, 1.5
      %small = fcmp olt %y, 0.5
      %z = if %small -> f64 {
        yield 0.5
      } else {
        yield %y
      }
      %d = fcmp olt %z, 8.0
      %next, %w = if %d -> i1, f64 {
        %j = add %i, 1
        %b = icmp slt %j, %n
        yield %b, %z
      } else {
        yield false, %y
      }
      yield %next, %w
    }
    %k = add %i, 1
    repeat %more, %k, %v, %v
  }
  return %r
}
";

/// Infinite loop except for the exit branch.
const ONE_EXIT: &str = "func @f(%a: f64) -> f64 {
  %r = loop iter(%x = %a) -> f64 {
    %c = fcmp ogt %x, 9.0
    %more, %v = if %c -> i1, f64 {
      yield false, %x
    } else {
      %y = fmul %x, 1.5
      yield true, %y
    }
    repeat %more, %v, %v
  }
  return %r
}
";

fn branches(unit: &Unit, func: gradus_ir::FuncId) -> Vec<Op> {
    let body = unit.functions[func].body.as_ref().expect("a body");
    let ops = body.walk(body.root());
    ops.filter(|op| matches!(body.kind(*op), OpKind::If))
        .collect()
}

#[test]
fn exit_conditions_become_results() {
    let mut unit = parse(TWO_EXITS, "exits.gir").expect("parses");
    let func = unit.function("f").expect("is there");
    let [outer, other, inner] = branches(&unit, func)[..] else {
        panic!("three branches");
    };
    let mut body = unit.functions[func].body.take().expect("a body");
    assert_eq!(exit_branch(&unit, &body, outer), None);
    assert_eq!(expose_exit_conditions(&mut unit, &mut body), 2);
    let first = exit_branch(&unit, &body, outer).expect("it leaves the loop");
    let second = exit_branch(&unit, &body, inner).expect("it leaves the loop");
    assert_eq!(exit_branch(&unit, &body, other), None);
    assert_eq!((first.continuing_arm, second.continuing_arm), (1, 0));
    assert_eq!(first.lp, second.lp);
    assert!(
        first.exit_condition.is_some()
            && second.exit_condition.is_some()
            && first.exit_condition != second.exit_condition
    );
    assert_eq!(expose_exit_conditions(&mut unit, &mut body), 0);
    unit.functions[func].body = Some(body);
    let findings = verify_function(&unit, func);
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn single_exit_needs_no_condition() {
    let mut unit = parse(ONE_EXIT, "exits.gir").expect("parses");
    let func = unit.function("f").expect("is there");
    let branch = branches(&unit, func)[0];
    let mut body = unit.functions[func].body.take().expect("a body");
    assert_eq!(expose_exit_conditions(&mut unit, &mut body), 0);
    let exit = exit_branch(&unit, &body, branch).expect("it leaves the loop");
    assert_eq!((exit.continuing_arm, exit.exit_condition), (1, None));
}
