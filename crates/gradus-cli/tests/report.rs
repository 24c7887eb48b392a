//! `--report`: the short text, the full text, the JSON document and the page show the same numbers, for any program.

use crate::support::{accepts, folder, shell, text, write};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const SPRING: &str = "\
#include <math.h>
double energy(double *x, int n, int steps)
{
    for (int t = 0; t < steps; t++)
        for (int i = 0; i < n; i++) {
            double left = i > 0 ? x[i - 1] : 0;
            x[n + i] -= 0.01 * (sin(x[i]) + (x[i] - left));
            x[i] += 0.01 * x[n + i];
        }
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += 0.5 * x[n + i] * x[n + i] + 1 - cos(x[i]);
    return sum;
}
";

/// Returns [`SPRING`] with lengths that the compiler knows.
fn fixed_spring() -> String {
    SPRING
        .replace("t < steps", "t < 50")
        .replace("i < n", "i < 20")
}

const PARALLEL: &str = "\
double total(const double *x, const int *at, int n)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += x[at[i]] * x[i];
    return sum;
}
";

fn document(file: &Path) -> Value {
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// Runs the command with arguments that may hold blanks.
fn gradus(at: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(args).current_dir(at);
    command.output().expect("gradus runs")
}

fn succeeds(at: &Path, args: &[&str]) -> Output {
    let output = gradus(at, args);
    assert!(
        output.status.success(),
        "{args:?}: {}",
        text(&output.stderr)
    );
    output
}

#[test]
fn every_form_shows_the_same_numbers() {
    let at = folder("report-forms");
    write(&at, "fixed.c", &fixed_spring());
    let short = accepts(&at, "grad fixed.c -f energy -o energy.o");
    let line =
        "grad fixed.c -f energy -o energy.o --report=full --report=json:r.json --report=html";
    let full = accepts(&at, line);
    let json = document(&at.join("r.json"));
    assert_eq!(
        (&json["format"], &json["version"]),
        (&"gradus-report".into(), &2.into())
    );
    let headline = &json["headlines"][0];
    let made = &json["derivatives"][0];
    assert_eq!(
        (&made["function"], &made["mode"]),
        (&"energy".into(), &"vjp".into())
    );
    let rows = list(&made["tape"], "rows");
    let sum: f64 = rows.iter().map(|row| number(&row["total_bytes"])).sum();
    assert_eq!(sum, number(&made["tape"]["bytes"]));
    assert_eq!(sum, number(&headline["tape"]["bytes"]));
    let of_lines: f64 = list(made, "lines")
        .iter()
        .map(|line| number(&line["tape"]["bytes"]))
        .sum();
    assert_eq!(sum, of_lines);
    let row = &rows[0];
    let loops = list(row, "loops").iter().map(|lp| number(&lp["count"]));
    let product: f64 = loops.product::<f64>() * number(&row["bytes"]) * number(&row["count"]);
    assert_eq!(product, number(&row["total_bytes"]));
    assert_eq!(
        (&row["reason"], &row["clobber"]["line"]),
        (&"overwritten".into(), &8.into())
    );
    let remedy = row["remedy"].as_str().expect("a remedy");
    let ops = |who: &str| number(&headline["ops"][who]);
    let cost = format!(
        "primal {}, derivative {:.0}k",
        ops("primal"),
        ops("derivative") / 1e3
    );
    for said in [&short, &full] {
        assert!(
            said.contains(&format!("tape: {sum} bytes\n")),
            "{sum}\n{said}"
        );
        assert!(said.contains(&cost), "{cost}\n{said}");
        assert!(
            said.contains(row["why"].as_str().expect("a reason")),
            "{said}"
        );
    }
    assert!(
        short.contains(remedy) && full.contains(row["formula"].as_str().expect("text")),
        "{short}"
    );
    let page = std::fs::read_to_string(at.join("energy.html")).expect("a page");
    let (_, inside) = page
        .split_once("id=\"gradus-report\">")
        .expect("the document");
    let (inside, _) = inside.split_once("</script>").expect("an end");
    assert_eq!(serde_json::from_str::<Value>(inside).expect("JSON"), json);
}

/// Lengths that only the run knows stay factors, in every form: no form shows a guessed number of bytes.
#[test]
fn unknown_lengths_stay_factors() {
    let at = folder("report-lengths");
    write(&at, "spring.c", SPRING);
    let said = accepts(
        &at,
        "grad spring.c -f energy --report=short --report=full --report=json:r.json --report=html",
    );
    let total = "  tape: 8 bytes × iterations of line 4 × iterations of line 5\n";
    assert_eq!(said.matches(total).count(), 2, "{said}");
    let json = document(&at.join("r.json"));
    let made = &json["derivatives"][0];
    let size = &json["headlines"][0]["tape"];
    let term = &size["terms"][0];
    assert_eq!(
        (&size["bytes"], &term["bytes"]),
        (&Value::Null, &8.0.into())
    );
    assert_eq!(
        list(term, "lengths"),
        ["iterations of line 4", "iterations of line 5"]
    );
    for part in ["bytes", "terms"] {
        assert_eq!(size[part], made["tape"][part]);
    }
    let row = &made["tape"]["rows"][0];
    assert_eq!(
        (&row["total_bytes"], &row["bytes"]),
        (&Value::Null, &8.into())
    );
    assert!(
        list(row, "loops").iter().all(|lp| lp["count"].is_null()),
        "{row}"
    );
    let lines = list(made, "lines").iter();
    let saved: Vec<&Value> = lines
        .map(|line| &line["tape"])
        .filter(|tape| tape["bytes"].is_null())
        .collect();
    assert_eq!(saved, [size]);
    let page = std::fs::read_to_string(at.join("spring.html")).expect("a page");
    let (page, _) = page
        .split_once("id=\"gradus-report\">")
        .expect("the document");
    assert!(
        page.contains("8 bytes × iterations of line 4 × iterations of line 5")
            && !page.contains(" MB"),
        "{page}"
    );
}

/// The short form has at most twelve lines, whatever the program.
#[test]
fn short_reports_are_short() {
    let at = folder("report-short");
    let many: String = (0..30)
        .map(|i| format!("double f{i}(double *x, int n) {{ for (int i = 0; i < n; i++) x[i] *= {i} + x[i] * x[i]; return x[0]; }}\n"))
        .collect();
    write(&at, "many.c", &many);
    write(&at, "spring.c", SPRING);
    write(&at, "total.c", PARALLEL);
    write(
        &at,
        "small.c",
        "double square(double x) { return x * x; }\n",
    );
    let names: String = (0..30).map(|i| format!(" -f f{i}")).collect();
    for (line, first) in [
        (
            format!("grad many.c{names}"),
            "f0 (many.c:1): VJP `f0_vjp`: ",
        ),
        (
            "grad spring.c -f energy --mode reverse,forward".to_string(),
            "energy (spring.c:2): VJP",
        ),
        (
            "grad total.c -f total --wrt x -- -O2 -fopenmp".to_string(),
            "total (total.c:1): VJP",
        ),
        (
            "grad small.c -f square".to_string(),
            "square (small.c:1): VJP",
        ),
        (
            "cc -O2 -fopenmp --report -c total.c".to_string(),
            "1 parallel region raised",
        ),
    ] {
        let said = accepts(&at, &line);
        let report: Vec<&str> = said.lines().filter(|l| !l.starts_with("wrote ")).collect();
        assert!(report.len() <= 12, "{line}: {} lines\n{said}", report.len());
        assert!(said.starts_with(first), "{line}\n{said}");
    }
    let said = accepts(&at, "grad small.c -f square");
    assert!(said.contains("tape: 0 bytes"), "{said}");
}

/// A document on standard output stands alone; a program without derivatives has an empty one.
#[test]
fn documents_stand_alone() {
    let at = folder("report-stdout");
    write(&at, "spring.c", SPRING);
    write(&at, "total.c", PARALLEL);
    write(&at, "plain.c", "int plain(int n) { return n; }\n");
    for line in [
        "grad spring.c -f energy --report=json",
        "grad spring.c -f energy --report=json:-",
        "check spring.c -f energy --arg n=3 --arg steps=2 --arg x=rand(6) --report=json",
        "cc -O2 -fopenmp --report=json -c total.c",
        "cc -O2 --report=json -c plain.c",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let output = succeeds(&at, &words);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{line}: {e}\n{}", text(&output.stdout)));
        assert_eq!(json["version"], 2, "{line}");
        let derives = !line.starts_with("cc");
        assert_eq!(!list(&json, "derivatives").is_empty(), derives, "{line}");
        let regions = list(&json, "parallel_regions");
        assert_eq!(!regions.is_empty(), line.contains("total.c"), "{line}");
        assert_eq!(
            json["check"]["right"] == true,
            line.starts_with("check"),
            "{line}"
        );
    }
    let page = succeeds(
        &at,
        &["grad", "spring.c", "-f", "energy", "--report=html:-"],
    );
    assert!(text(&page.stdout).starts_with("<!doctype html>"));
    assert!(text(&page.stderr).contains("wrote spring.o"));
}

/// Every field of the document is explained in the manual.
#[test]
fn the_manual_names_every_field() {
    fn keys(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Array(all) => all.iter().for_each(|one| keys(one, into)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| {
                into.push(key.clone());
                keys(value, into);
            }),
            _ => {}
        }
    }
    let at = folder("report-manual");
    write(&at, "spring.c", SPRING);
    write(&at, "total.c", PARALLEL);
    write(
        &at,
        "k.cu",
        "__global__ void k(double *x) { __shared__ double s[32]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); \
         x[threadIdx.x] = s[31 - threadIdx.x]; }\nvoid run(double *x) { k<<<1, 32>>>(x); }\n",
    );
    let mut found = Vec::new();
    for line in [
        "check spring.c -f energy --arg n=3 --arg steps=2 --arg x=rand(6) --report=json:r.json",
        "grad total.c -f total --wrt x --report=json:r.json -- -O2 -fopenmp",
        "cc -O2 -fopenmp --report=json:r.json -c total.c",
        "nvcc -O2 --report=json:r.json -c k.cu",
    ] {
        accepts(&at, line);
        keys(&document(&at.join("r.json")), &mut found);
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 80, "{found:?}");
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/report.md"
    );
    let page = std::fs::read_to_string(page).expect("the manual");
    let is_missing = |key: &&String| !page.contains(&format!("`{key}`"));
    let missing: Vec<&String> = found.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Names with quotes and markup, sources that are not UTF-8, and folders that cannot be written.
#[test]
fn odd_files_and_places() {
    let at = folder("report-odd");
    let name = "a'\"<script>alert(1)<!--.c";
    write(&at, name, SPRING);
    succeeds(
        &at,
        &[
            "grad",
            name,
            "-f",
            "energy",
            "-o",
            "o.o",
            "--report=html",
            "--report=json:o.json",
        ],
    );
    let page = std::fs::read_to_string(at.join("o.html")).expect("a page");
    assert_eq!(page.matches("<script").count(), 1, "only the document");
    assert!(!page.contains("<!--") && page.contains("&lt;script&gt;"));
    assert_eq!(
        document(&at.join("o.json"))["derivatives"][0]["location"]["file"],
        name
    );

    let latin = b"/* caf\xe9 */\ndouble f(double *x, int n) { for (int i = 0; i < n; i++) x[i] *= x[i]; return x[0]; }\n";
    std::fs::write(at.join("latin.c"), latin).expect("written");
    succeeds(&at, &["grad", "latin.c", "-f", "f", "--report=html"]);
    let page = std::fs::read_to_string(at.join("latin.html")).expect("a page");
    assert!(page.contains("caf\u{fffd}"));

    write(&at, "spring.c", SPRING);
    let refused = gradus(
        &at,
        &[
            "grad",
            "spring.c",
            "-f",
            "energy",
            "-o",
            "no.o",
            "--report=html:none/r.html",
        ],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("GRD0023"),
        "{}",
        text(&refused.stderr)
    );
    assert!(!at.join("no.o").exists(), "all outputs appear, or none");
    for form in ["long", "json:", "", "html:"] {
        for command in [
            &["grad", "spring.c", "-f", "energy"][..],
            &["cc", "-c", "spring.c"],
        ] {
            let option = format!("--report={form}");
            let refused = gradus(&at, &[command, &[&option]].concat());
            assert_eq!(refused.status.code(), Some(1), "{option}");
            assert!(
                text(&refused.stderr).contains("GRD0035"),
                "{}",
                text(&refused.stderr)
            );
        }
    }
    let broken = gradus(
        &at,
        &[
            "grad",
            "spring.c",
            "-f",
            "none",
            "--report=html:refused.html",
        ],
    );
    assert!(!broken.status.success() && !at.join("refused.html").exists());
}

/// The old name of the option works, with a warning.
#[test]
fn the_old_name_warns() {
    let at = folder("report-old");
    write(&at, "total.c", PARALLEL);
    let output = shell(&at, "gradus cc -O2 -fopenmp --gradus-report -c total.c");
    assert!(text(&output.stderr).contains("use `--report=full`"));
    assert!(text(&output.stdout).contains("total.c:4: raised to parallel loops and tasks"));
}

/// The browser, if the machine has one.
fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &&str| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    };
    names.into_iter().find(runs)
}

/// Measures a page: figures, widths, elements.
const MEASURE: &str = "<script>
const wide = [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
const of = name => [...document.querySelectorAll('data.' + name)].map(e => Number(e.value));
const out = document.createElement('pre');
out.id = 'measured';
out.textContent = JSON.stringify({
  width: innerWidth, overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  wide: wide.slice(0, 3).map(e => e.outerHTML.slice(0, 200)),
  height: document.body.getBoundingClientRect().height,
  lines: document.querySelectorAll('.source tbody tr[id]').length, text: document.body.innerText.length,
  tape: of('tape-total'), rows: of('tape-row'), tapeLines: of('line-tape'), ops: of('line-derivative'),
  cost: of('ops-derivative'), primal: of('ops-primal'), links: [...document.querySelectorAll('a')]
    .filter(a => !document.querySelector(a.getAttribute('href'))).map(a => a.getAttribute('href')),
});
document.body.append(out);
</script>";

/// Opens a page in the browser. Returns the measured facts, and the browser's messages on the page itself.
fn measured(at: &Path, browser: &str, page: &str) -> (Value, String) {
    let run = |file: &Path| {
        let mut command = Command::new(browser);
        command.args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]);
        command.args([
            "--enable-logging=stderr",
            "--window-size=1280,900",
            "--dump-dom",
        ]);
        command.arg(format!("--user-data-dir={}", at.join("profile").display()));
        command.arg(format!("file://{}", file.display()));
        command.output().expect("the browser runs")
    };
    let untouched = run(&at.join(page));
    let text_of = std::fs::read_to_string(at.join(page)).expect("a page");
    let policy = "<meta http-equiv=\"Content-Security-Policy\"";
    assert!(text_of.contains(policy));
    let open = text_of
        .replace(policy, "<meta name=\"policy\"")
        .replace("</body>", &format!("{MEASURE}</body>"));
    let copy = at.join(format!("measured-{page}"));
    std::fs::write(&copy, open).expect("written");
    let dom = text(&run(&copy).stdout);
    let (_, found) = dom
        .split_once("<pre id=\"measured\">")
        .unwrap_or_else(|| panic!("{dom}"));
    let (found, _) = found.split_once("</pre>").expect("an end");
    let found = found
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    (
        serde_json::from_str(&found).expect("JSON"),
        text(&untouched.stderr),
    )
}

/// The page in a browser: no message on the console, nothing wider than the window, and the numbers of the document.
#[test]
fn the_page_renders() {
    // Not a failure: `cargo xtask setup` installs a browser, other machines may have none.
    let Some(browser) = browser() else { return };
    let at = folder("report-page");
    write(&at, "fixed.c", &fixed_spring());
    write(&at, "total.c", PARALLEL);
    for (file, line) in [
        (
            "fixed",
            "grad fixed.c -f energy --report=html --report=json:fixed.json",
        ),
        (
            "total",
            "grad total.c -f total --wrt x --report=html --report=json:total.json -- -O2 -fopenmp",
        ),
    ] {
        accepts(&at, line);
        let json = document(&at.join(format!("{file}.json")));
        let (page, said) = measured(&at, browser, &format!("{file}.html"));
        assert!(!said.contains("CONSOLE"), "{said}");
        assert_eq!(
            (&page["width"], &page["overflow"]),
            (&1280.into(), &0.into()),
            "{page}"
        );
        assert!(
            list(&page, "wide").is_empty() && list(&page, "links").is_empty(),
            "{page}"
        );
        assert!(
            number(&page["text"]) > 600.0 && number(&page["height"]) > 500.0,
            "{page}"
        );
        assert!(number(&page["lines"]) > 5.0, "{page}");
        let (headline, made) = (&json["headlines"][0], &json["derivatives"][0]);
        for (shown, told) in [
            (&page["tape"][0], &headline["tape"]["bytes"]),
            (&page["cost"][0], &headline["ops"]["derivative"]),
            (&page["primal"][0], &headline["ops"]["primal"]),
        ] {
            assert_eq!(number(shown), number(told), "{page}");
        }
        let sum = |key: &str| list(&page, key).iter().map(number).sum::<f64>();
        let tape = number(&made["tape"]["bytes"]);
        assert_eq!((sum("rows"), sum("tapeLines")), (tape, tape), "{page}");
        let ops = list(made, "lines")
            .iter()
            .map(|line| number(&line["dynamic_ops"]["derivative"]));
        let (all, shown) = (ops.sum::<f64>(), sum("ops"));
        assert!((all - shown).abs() <= 1e-9 * all, "{all} {shown}");
    }
}

/// The chunks of a loop with `schedule(dynamic, 8)` have eight iterations in the estimate of the derivative, too.
#[test]
fn estimates_of_dynamic_loops() {
    let at = folder("report-dynamic");
    let source = "#include <math.h>
double waves(const double *x, int n) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum) schedule(dynamic, 8)
    for (int i = 0; i < n; i++) sum += sin(x[i]);
    return sum;
}
";
    write(&at, "waves.c", source);
    accepts(
        &at,
        "grad waves.c -f waves -o waves.o --report=json:r.json -- -O2 -fopenmp",
    );
    let json = document(&at.join("r.json"));
    let ops = &json["derivatives"][0]["dynamic_ops"];
    let ratio = number(&ops["derivative"]) / number(&ops["primal"]);
    assert!((1.0..10.0).contains(&ratio), "{ops}");
}

/// LLVM's tools read the remarks, and each line of the tape has one.
#[test]
fn remarks_are_for_llvm() {
    let at = folder("report-remarks");
    write(&at, "spring.c", SPRING);
    write(&at, "total.c", PARALLEL);
    for (line, remarks) in [
        (
            "grad spring.c -f energy --report=remarks:r.yaml",
            ["!Missed|SavedValue|7", "!Analysis|Derivative|2"],
        ),
        (
            "grad total.c -f total --wrt x --report=remarks:r.yaml -- -O2 -fopenmp",
            ["!Passed|ReverseLoop|5", "!Passed|ParallelRegion|4"],
        ),
    ] {
        accepts(&at, line);
        let yaml = std::fs::read_to_string(at.join("r.yaml")).expect("the remarks");
        let documents: Vec<&str> = yaml.split("--- ").skip(1).collect();
        for wanted in remarks {
            let words: Vec<&str> = wanted.split('|').collect();
            let is_found = documents.iter().any(|one| {
                one.starts_with(words[0])
                    && one.contains(&format!("Name:            {}\n", words[1]))
                    && one.contains(&format!(", Line: {},", words[2]))
            });
            assert!(is_found, "{wanted}\n{yaml}");
        }
        let counted = shell(
            &at,
            "/usr/lib/llvm-22/bin/llvm-remarkutil count --parser=yaml r.yaml",
        );
        let total: usize = (text(&counted.stdout)
            .lines()
            .filter_map(|line| line.rsplit(',').next()))
        .filter_map(|number| number.trim().parse::<usize>().ok())
        .sum();
        assert!(total > 0, "{}", text(&counted.stdout));
    }
}
