//! The report on derivatives: activity, cost, saved values with reasons and remedies.

use crate::reports::derivative_record::DerivativeRecord;
use crate::reports::remedy::remedy;
use crate::requests::source_arguments;
use crate::wire::reply::Derivative;
use crate::wire::report::{
    AdditionKind, Additions, AliasVersion, ArgumentReport, ArgumentRole, DerivativeMode,
    DerivativeReport, DynamicOps, LineReport, Location, OpCounts, ParameterReport, RecomputedLoop,
    ResultRole, ReverseLoop, Tape, TapeLoop, TapeRow, TapeSize,
};
use gradus_ad::{ArgActivity, Mode, ParallelLoop, ResultActivity, SavedValue, Tangents, Versions};
use gradus_ir::{SourceSpan, Unit};
use std::collections::BTreeMap;

/// Returns the report on all functions emitted for each root. `named` describes the derivatives requested by name.
pub(crate) fn reports(
    unit: &Unit,
    roots: &[Vec<DerivativeRecord>],
    named: &[Derivative],
) -> Vec<DerivativeReport> {
    let numbered = roots.iter().flat_map(|made| made.iter().enumerate());
    numbered
        .map(|(number, made)| of_record(unit, made, named, number == 0))
        .collect()
}

fn of_record(
    unit: &Unit,
    made: &DerivativeRecord,
    named: &[Derivative],
    requested: bool,
) -> DerivativeReport {
    let function = &unit.functions[made.variant.func];
    let report = &made.report;
    let mode = match made.variant.mode {
        Mode::Forward => match made.variant.tangents {
            Tangents::Numbers => DerivativeMode::Jvp,
            Tangents::Dependencies => DerivativeMode::Dependencies,
        },
        Mode::Combined => DerivativeMode::Vjp,
        Mode::Augmented => DerivativeMode::ForwardPass,
        Mode::Reverse => DerivativeMode::ReversePass,
    };
    let has_mode = |one: &&Derivative| match one.mode {
        crate::Mode::Forward => mode == DerivativeMode::Jvp,
        crate::Mode::Reverse => mode == DerivativeMode::Vjp,
        crate::Mode::Dependencies => mode == DerivativeMode::Dependencies,
    };
    let of_function = named.iter().filter(|one| one.function == function.name);
    let named = of_function.filter(has_mode).find(|_| requested);
    let saves = matches!(made.variant.mode, Mode::Combined | Mode::Augmented);
    let tape = (saves && !report.versions).then(|| tape(&report.saved));
    DerivativeReport {
        function: function
            .source_name
            .as_ref()
            .unwrap_or(&function.name)
            .clone(),
        symbol: function.name.clone(),
        derivative: named.map(|one| one.name.clone()),
        requested,
        mode,
        version: match made.variant.versions {
            Versions::RuntimeCheck => AliasVersion::Only,
            Versions::Disjoint => AliasVersion::NoAlias,
            Versions::Plain => AliasVersion::Fallback,
        },
        location: function.span.as_ref().map(location),
        arguments: arguments(unit, made),
        result: match made.variant.result {
            ResultActivity::Const => ResultRole::Inactive,
            ResultActivity::Active => ResultRole::Active,
            ResultActivity::Dup => ResultRole::Shadow,
            ResultActivity::Both => ResultRole::ActiveAndShadow,
        },
        prototype: named.map(|one| one.prototype.clone()),
        parameters: named.map(parameters).unwrap_or_default(),
        selects_version: report.versions,
        active_floats: report.active_values.0,
        floats: report.active_values.1,
        ops: OpCounts {
            primal: report.ops.0,
            derivative: report.ops.1,
        },
        dynamic_ops: DynamicOps {
            primal: report.runs.0,
            derivative: report.runs.1,
        },
        runtime_activity_tests: report.runtime_activity_tests,
        assumes_aliasing_rules: report.assumes_aliasing_rules,
        scatter_to_gather: made.gather_loops,
        recomputed_loops: (report.recomputed_loops.iter())
            .map(|(span, idle)| RecomputedLoop {
                location: span.as_ref().map(location),
                omitted_in_forward_pass: *idle,
            })
            .collect(),
        parallel_loops: report.parallel.iter().map(reverse_loop).collect(),
        lines: lines(made, saves),
        tape,
    }
}

/// Returns the activity of each argument.
fn arguments(unit: &Unit, made: &DerivativeRecord) -> Vec<ArgumentReport> {
    let role = |param: usize| match made.variant.args[param] {
        ArgActivity::Const => ArgumentRole::Inactive,
        ArgActivity::Dup => ArgumentRole::Shadow,
        ArgActivity::MaybeDup => ArgumentRole::ShadowIfDifferent,
        ArgActivity::DupNoNeed => ArgumentRole::ShadowContentsUnused,
        ArgActivity::Active => ArgumentRole::Active,
    };
    let arguments = source_arguments(unit, made.variant.func).into_iter();
    arguments
        .map(|argument| {
            let mut activity: Vec<ArgumentRole> = argument.params.map(role).collect();
            activity.dedup();
            ArgumentReport {
                name: argument.name,
                activity,
            }
        })
        .collect()
}

fn parameters(derivative: &Derivative) -> Vec<ParameterReport> {
    let parameter = |argument: &crate::Argument| {
        let (role, of) = argument.role.name_and_argument();
        ParameterReport {
            name: argument.name.clone(),
            c_type: argument.c_type.clone(),
            role: role.to_string(),
            of,
        }
    };
    derivative.arguments.iter().map(parameter).collect()
}

fn reverse_loop(one: &ParallelLoop) -> ReverseLoop {
    let kinds = [
        AdditionKind::Plain,
        AdditionKind::Atomic,
        AdditionKind::Privatised,
        AdditionKind::TwoPhase,
    ];
    let lines = one.adds.iter().chain(&one.privatized_and_two_phase);
    let additions = kinds.into_iter().zip(lines);
    ReverseLoop {
        location: one.span.as_ref().map(location),
        parallel: one.is_concurrent,
        additions: additions
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(kind, lines)| Additions {
                kind,
                lines: lines.clone(),
            })
            .collect(),
        reductions: one.reductions,
    }
}

/// Returns cost, activity and tape by source line.
fn lines(made: &DerivativeRecord, saves: bool) -> Vec<LineReport> {
    let empty = |file: &str, line: u32| LineReport {
        file: file.to_string(),
        line,
        dynamic_ops: DynamicOps::default(),
        active_floats: 0,
        floats: 0,
        tape: TapeSize::default(),
    };
    let mut lines: BTreeMap<(String, u32), LineReport> = BTreeMap::new();
    for ((file, line), cost) in &made.report.lines {
        let report = LineReport {
            dynamic_ops: DynamicOps {
                primal: cost.primal,
                derivative: cost.derivative,
            },
            active_floats: cost.active,
            floats: cost.floats,
            ..empty(file, *line)
        };
        lines.insert((file.clone(), *line), report);
    }
    let saved = made.report.saved.iter().filter(|_| saves);
    for (span, one) in saved.filter_map(|one| Some((one.span.as_ref()?, one))) {
        let span = span.called_at.as_deref().unwrap_or(span);
        let line = lines
            .entry((span.file.clone(), span.line))
            .or_insert_with(|| empty(&span.file, span.line));
        line.tape.add_row(&row(one));
    }
    lines.into_values().collect()
}

/// Returns a span as data.
pub(crate) fn location(span: &SourceSpan) -> Location {
    Location {
        file: span.file.clone(),
        line: span.line,
        column: span.column,
        called_at: (span.called_at.as_deref()).map(|at| Box::new(location(at))),
    }
}

fn place(span: &SourceSpan) -> String {
    format!("{}:{}", span.file, span.line)
}

/// Returns the tape's contents by source line.
fn tape(saved: &[SavedValue]) -> Tape {
    let line = |saved: &SavedValue| saved.span.as_ref().map(place);
    let mut totals: BTreeMap<Option<String>, f64> = BTreeMap::new();
    for one in saved {
        *totals.entry(line(one)).or_default() += one.total_bytes;
    }
    let mut order: Vec<&SavedValue> = saved.iter().collect();
    order.sort_by(|a, b| {
        let (at_a, at_b) = (line(a), line(b));
        let by_line = totals[&at_b].total_cmp(&totals[&at_a]);
        by_line
            .then_with(|| at_a.cmp(&at_b))
            .then_with(|| b.total_bytes.total_cmp(&a.total_bytes))
            .then_with(|| {
                let key = |one: &SavedValue| {
                    let texts = (one.description.clone(), one.reason_text.clone());
                    (formula(one), texts)
                };
                key(a).cmp(&key(b))
            })
    });
    let mut rows: Vec<TapeRow> = Vec::new();
    let mut before: Option<Option<String>> = None;
    for one in order {
        let at = line(one);
        let row = row(one);
        match rows.last_mut() {
            // Equal except for the index.
            Some(last)
                if before.as_ref() == Some(&at)
                    && (&last.formula, &last.value, &last.why)
                        == (&row.formula, &row.value, &row.why) =>
            {
                last.count += 1;
                last.total_bytes = last.size().bytes;
            }
            _ => rows.push(row),
        }
        before = Some(at);
    }
    let mut size = TapeSize::default();
    rows.iter().for_each(|row| size.add_row(row));
    Tape {
        bytes: size.bytes,
        terms: size.terms,
        rows,
    }
}

fn row(saved: &SavedValue) -> TapeRow {
    let loops = saved.loops.iter().map(|one| TapeLoop {
        location: one.span.as_ref().map(location),
        trips: one.trips.clone(),
        count: one.trips.parse::<u64>().is_ok().then_some(one.estimate),
    });
    let mut row = TapeRow {
        location: saved.span.as_ref().map(location),
        value: saved.description.clone(),
        count: 1,
        bytes: saved.bytes,
        loops: loops.collect(),
        formula: formula(saved),
        total_bytes: None,
        storage: saved.place.to_string(),
        reason: saved.reason,
        why: saved.reason_text.clone(),
        clobber: saved.clobber.as_ref().map(location),
        remedy: remedy(saved),
    };
    row.total_bytes = row.size().bytes;
    row
}

/// Returns the most expensive entry of these roots' tapes, with the source line.
pub(crate) fn most_expensive_entry(roots: &[Vec<DerivativeRecord>]) -> Option<String> {
    let kept = roots.iter().flatten().flat_map(|made| &made.report.saved);
    let kept = kept.max_by(|a, b| {
        let bytes = a.total_bytes.total_cmp(&b.total_bytes);
        bytes.then_with(|| (size(b), &b.description).cmp(&(size(a), &a.description)))
    })?;
    let at = match &kept.span {
        Some(span) => format!("{}: ", place(span)),
        None => String::new(),
    };
    Some(format!("{at}{}, {}", kept.description, size(kept)))
}

/// Formats size, trip counts and location of a saved value.
fn size(kept: &SavedValue) -> String {
    format!("{} ({})", formula(kept), kept.place)
}

/// Formats size and trip counts of a saved value.
fn formula(kept: &SavedValue) -> String {
    let times = kept.loops.iter().map(|one| format!(" × {}", one.trips));
    let noun = if kept.bytes == 1 { "byte" } else { "bytes" };
    format!("{} {noun}{}", kept.bytes, times.collect::<String>())
}
