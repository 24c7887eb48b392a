//! Numbers that the program moves or changes as integers, under the name of an integer type: moves are followed, other
//! uses of the bits are refused.

use crate::support::{accepts, folder, refuses, write};

const C: &str = include_str!("word_moves.c");
const CPP: &str = include_str!("word_moves.cpp");
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

#[test]
fn moved_words_keep_derivatives() {
    let at = folder("word_moves");
    write(&at, "p.c", C);
    write(&at, "p.cpp", CPP);
    let arguments = "--arg x=rand(8) --arg n=8";
    for level in LEVELS {
        for name in ["values_by_function", "sorted", "single"] {
            accepts(&at, &format!("check p.c -f {name} {arguments} -- {level}"));
        }
        for name in ["words", "reversed"] {
            let flags = format!("-std=c++20 {level}");
            accepts(
                &at,
                &format!("check p.cpp -f {name} {arguments} -- {flags}"),
            );
        }
    }
}

#[test]
fn bits_that_become_numbers_are_refused() {
    let at = folder("word_moves_refused");
    write(&at, "p.c", C);
    let names = [
        "bytes_to_array",
        "array_to_array",
        "after_a_maximum",
        "union_of_converted",
        "array_of_converted",
    ];
    for level in LEVELS {
        for name in names {
            refuses(
                &at,
                &format!("grad p.c -f {name} -o p.o -- {level}"),
                "GRD0008",
            );
        }
        // The union holds integers, too: only the run tells.
        let said = refuses(
            &at,
            &format!("check p.c -f union_to_array --arg x=rand(5) --arg n=5 -- {level}"),
            "GRD0008",
        );
        assert!(
            said.contains("converts the bits of a number"),
            "{level}: {said}"
        );
    }
}
