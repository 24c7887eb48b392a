//! Blocks stored in static pointers of random C programs, alive across calls. A block of addresses is
//! stored to and never loaded. A block of floats is filled by the first call. A workspace grows on demand.

use super::c::{Array, Writer};

impl Writer<'_> {
    /// Emits the static pointers, and the functions that fill their blocks.
    pub fn kept_blocks(&mut self) {
        let seed = self.seed;
        let inline = match self.kept.below(2) {
            0 => "static",
            _ => "__attribute__((noinline)) static",
        };
        let notes = match self.kept.below(4) {
            0 => format!(
                "static double **noted_{seed}; static int notes_{seed};\n\
                 {inline} void note_{seed}(double *p) {{ if (!noted_{seed}) noted_{seed} = malloc(8 * sizeof *noted_{seed}); noted_{seed}[notes_{seed}++ & 7] = p; }}"
            ),
            1 => format!(
                "static double **noted_{seed}; static int notes_{seed}, room_{seed};\n\
                 {inline} void note_{seed}(double *p) {{ if (notes_{seed} == 64) notes_{seed} = 0; if (notes_{seed} >= room_{seed}) {{ room_{seed} = room_{seed} ? 2 * room_{seed} : 1; noted_{seed} = realloc(noted_{seed}, room_{seed} * sizeof *noted_{seed}); }} noted_{seed}[notes_{seed}++] = p; }}"
            ),
            2 => format!(
                "static struct {{ double *p; int k; }} *noted_{seed}; static int notes_{seed};\n\
                 {inline} void note_{seed}(double *p) {{ if (!noted_{seed}) noted_{seed} = calloc(8, sizeof *noted_{seed}); noted_{seed}[notes_{seed} & 7].k = notes_{seed}; noted_{seed}[notes_{seed}++ & 7].p = p; }}"
            ),
            _ => format!(
                "static struct noted_{seed} {{ struct noted_{seed} *next; double *p; }} *noted_{seed};\n\
                 {inline} void note_{seed}(double *p) {{ struct noted_{seed} *e = malloc(sizeof *e); e->p = p; e->next = noted_{seed}; noted_{seed} = e; }}"
            ),
        };
        self.line(notes);
        self.line(format!(
            "static double *table_{seed};\n\
             {inline} void fill_{seed}(void) {{ if (!table_{seed}) {{ table_{seed} = malloc(8 * sizeof *table_{seed}); for (int i = 0; i < 8; i++) table_{seed}[i] = 0.1 * i; }} }}"
        ));
        let grow = match self.kept.below(3) {
            0 => format!("free(work_{seed}); work_{seed} = malloc(n * sizeof *work_{seed});"),
            1 => format!("work_{seed} = realloc(work_{seed}, n * sizeof *work_{seed});"),
            _ => format!("free(work_{seed}); work_{seed} = calloc(n, sizeof *work_{seed});"),
        };
        self.line(format!(
            "static double *work_{seed}; static int work_room_{seed};\n\
             {inline} double *need_{seed}(int n) {{ if (n > work_room_{seed}) {{ {grow} work_room_{seed} = n; }} return work_{seed}; }}"
        ));
    }

    /// Fills and reads a workspace that grows on demand.
    pub fn use_workspace(&mut self) {
        if self.kept.below(3) != 0 {
            return;
        }
        self.note("workspace that is kept");
        let (seed, length) = (self.seed, 2 + self.kept.below(9));
        let (j, k) = (self.kept.below(length), self.kept.below(length));
        self.line(format!(
            "{{ double *w = need_{seed}({length}); for (int q = 0; q < {length}; q++) w[q] = 0.3 * q * s + 0.1 * (q ? w[q - 1] : s * s); s = 0.6 * s + 0.2 * work_{seed}[{j}] * w[{k}]; }}"
        ));
    }

    /// Stores the addresses of some arrays.
    pub fn note_addresses(&mut self) {
        let arrays: Vec<Array> = self.arrays.clone();
        for array in arrays {
            if self.kept.below(4) == 0 {
                self.note("address noted in a block that is kept");
                self.line(format!("note_{}({});", self.seed, array.name));
            }
        }
    }

    /// Reads a float of the table.
    pub fn read_table(&mut self) {
        if self.kept.below(3) == 0 {
            self.note("table that is kept");
            let (seed, k) = (self.seed, self.kept.below(8));
            self.line(format!(
                "fill_{seed}(); s = 0.7 * s + 0.2 * table_{seed}[{k}];"
            ));
        }
    }
}
