//! Addresses of active memory in integers with which the program computes.

use crate::support::{accepts, folder, refuses, write};

const C: &str = include_str!("address_words.c");
/// Functions of the C program with derivatives.
const NAMES: [&str; 6] = [
    "moved_cursor",
    "table_of_addresses",
    "tagged_nodes",
    "rounded_arena",
    "constant_addresses",
    "integers_over_addresses",
];
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

#[test]
fn arithmetic_with_addresses() {
    let at = folder("arithmetic_with_addresses");
    write(&at, "p.c", C);
    for level in LEVELS {
        for name in NAMES {
            let command = format!("check p.c -f {name} --arg x=rand(5) --arg n=4 -- {level}");
            accepts(&at, &command);
        }
    }
}

/// Programs that lose the shadow of an address: by parts, and by arithmetic without a shadow.
#[test]
fn addresses_without_a_shadow() {
    let at = folder("addresses_without_a_shadow");
    let programs = [
        // Pointers are copied byte by byte.
        "double *w[8], *v[8];
        for (int i = 0; i < n; i++) w[i] = t + i;
        const char *from = (const char *)w; char *to = (char *)v;
        for (int i = 0; i < 8 * n; i++) to[i] = from[i];
        for (int i = 0; i < n; i++) r += *v[i] * (i + 1);",
        // The halves of a word are copied.
        "union { uint64_t word; struct { uint32_t low, high; } half; } w[8], v[8];
        for (int i = 0; i < n; i++) w[i].word = (uint64_t)(t + i);
        for (int i = 0; i < n; i++) { v[i].half.low = w[n - 1 - i].half.low; v[i].half.high = w[n - 1 - i].half.high; }
        for (int i = 0; i < n; i++) r += *(double *)v[i].word * (i + 1);",
        // A tag takes the place of the highest byte.
        "uint64_t w[8];
        for (int i = 0; i < n; i++) w[i] = (uint64_t)(t + i);
        for (int i = 0; i < n; i++) ((unsigned char *)w)[8 * i + 7] = (unsigned char)i;
        for (int i = 0; i < n; i++) r += *(double *)(w[i] & 0xffffffffffffffull);",
        // The middle of two addresses.
        "uint64_t low = (uint64_t)t, high = (uint64_t)(t + 2);
        r = *(double *)((low + high) / 2) + t[0];",
        // The middle, in a table of addresses.
        "uint64_t w[3] = {(uint64_t)t, (uint64_t)(t + 2)};
        w[2] = (w[0] + w[1]) >> 1;
        r = *(double *)w[2] * x[1];",
        // A multiple, divided again.
        "uint64_t p = (uint64_t)(t + 1) * 3;
        r = *(double *)(p / 3);",
    ];
    for program in programs {
        let source = format!(
            "#include <stdint.h>
            double f(const double *x, int n) {{
                double t[8], r = 0;
                for (int i = 0; i < n; i++) t[i] = x[i] * x[i];
                {program}
                return r;
            }}"
        );
        write(&at, "p.c", &source);
        for level in LEVELS {
            let command = format!("check p.c -f f --arg n=4 --arg x=rand(n) -- {level}");
            refuses(&at, &command, "GRD0006");
        }
    }
}

/// A C++ string has no shadow for numbers.
#[test]
fn numbers_in_strings() {
    let at = folder("numbers_in_strings");
    let source = "#include <cstring>
        #include <string>
        extern \"C\" double f(const double *x, int n) {
            std::string text;
            double r = 0;
            for (int i = 0; i < n; i++) { double square = x[i] * x[i]; text.append((char *)&square, sizeof square); }
            for (int i = 0; i < n; i++) { double square; std::memcpy(&square, text.data() + 8 * i, 8); r += square * (i + 1); }
            return r;
        }";
    write(&at, "p.cpp", source);
    for level in LEVELS {
        let command = format!("check p.cpp -f f --arg n=4 --arg x=rand(n) -- {level}");
        refuses(&at, &command, "GRD0008");
    }
}
