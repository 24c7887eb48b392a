//! PTX thread instructions: special registers, barriers, warp operations.

use super::read::Operand;
use super::{PREDICATE, Type, WORD, Writer};
use crate::cuda_merge::inline_thread_queries::EXIT;

/// Returns whether an instruction synchronizes or communicates between threads.
pub(super) fn is_collective(name: &[String]) -> bool {
    let words = ["bar", "barrier", "shfl", "vote", "match", "redux"];
    name.first()
        .is_some_and(|first| words.contains(&first.as_str()))
}

impl Writer {
    /// Emits the value of a special register.
    pub(super) fn special_register(&mut self, name: &str, bits: u32) -> Option<String> {
        let name = name.strip_prefix('%')?;
        if let ("clock64" | "globaltimer", 64) = (name, bits) {
            return Some(self.call("i64", &format!("__gr_{name}"), &[]));
        }
        if bits != 32 {
            return None;
        }
        if let Some((of, dimension @ ("x" | "y" | "z"))) = name.split_once('.') {
            let known = matches!(of, "tid" | "ntid" | "ctaid" | "nctaid");
            return known.then(|| self.call("i32", &format!("__gr_{of}_{dimension}"), &[]));
        }
        match name {
            "laneid" | "clock" => Some(self.call("i32", &format!("__gr_{name}"), &[])),
            "lanemask_eq" | "lanemask_lt" | "lanemask_le" | "lanemask_gt" | "lanemask_ge" => {
                let lane = self.call("i32", "__gr_laneid", &[]);
                let own = self.op(&format!("shl i32 1, {lane}"));
                let below = self.op(&format!("sub i32 {own}, 1"));
                Some(match &name["lanemask_".len()..] {
                    "eq" => own,
                    "lt" => below,
                    "le" => self.op(&format!("or i32 {below}, {own}")),
                    "ge" => self.op(&format!("xor i32 {below}, -1")),
                    _ => {
                        let not = self.op(&format!("or i32 {below}, {own}"));
                        self.op(&format!("xor i32 {not}, -1"))
                    }
                })
            }
            "warpid" => {
                let mut at = "0".to_string();
                for dimension in ["z", "y", "x"] {
                    let size = self.call("i32", &format!("__gr_ntid_{dimension}"), &[]);
                    let place = self.call("i32", &format!("__gr_tid_{dimension}"), &[]);
                    let row = self.op(&format!("mul i32 {at}, {size}"));
                    at = self.op(&format!("add i32 {row}, {place}"));
                }
                Some(self.op(&format!("lshr i32 {at}, 5")))
            }
            _ => None,
        }
    }

    /// Translates barriers, fences and warp operations; `None` if the form is unknown.
    pub(super) fn threads(&mut self, name: &[&str], operands: &[Operand]) -> Option<()> {
        match (name, operands) {
            (
                ["bar" | "barrier", "sync"]
                | ["bar" | "barrier", "cta", "sync"]
                | ["barrier", "sync", "aligned"]
                | ["barrier", "cta", "sync", "aligned"],
                [Operand::Number(0)],
            ) => {
                self.call("void", "__gr_barrier", &[("i32", "0".into())]);
                Some(())
            }
            (["bar", "warp", "sync"], [mask]) => {
                let mask = self.int_operand(mask, 32)?;
                self.call("void", "__gr_syncwarp", &[("i32", mask)]);
                Some(())
            }
            (["membar", "cta" | "gl" | "sys"], [])
            | (["fence", "cta" | "gpu" | "sys" | "cluster"], [])
            | (["fence", "acq_rel" | "sc", "cta" | "gpu" | "sys" | "cluster"], []) => {
                self.line("fence seq_cst");
                Some(())
            }
            // A launch begins only after the previous launch has ended.
            (["griddepcontrol", "wait" | "launch_dependents"], []) => Some(()),
            (["nanosleep", "u32"], [time]) => {
                let time = self.int_operand(time, 32)?;
                self.call("void", "__gr_nanosleep", &[("i32", time)]);
                Some(())
            }
            (["trap"], []) => {
                self.call("void", "llvm.trap", &[]);
                Some(())
            }
            (["exit"], []) => {
                self.call("void", EXIT, &[]);
                let at = self.fresh();
                self.line(&format!("unreachable\nbehind{at}:"));
                Some(())
            }
            (["activemask", "b32"], [to]) => {
                let mask = self.call("i32", "__gr_activemask", &[]);
                self.write_register(to, &mask, WORD)
            }
            (["shfl", "sync", how, "b32"], [to, value, by, segment, mask]) => {
                self.shuffle(how, to, [value, by, segment, mask])
            }
            (["vote", "sync", what @ ("all" | "any" | "uni"), "pred"], [to, holds, mask]) => {
                let args = self.masked(mask, holds, 1)?;
                let result = self.call("i1", &format!("__gr_vote_{what}"), &args);
                self.write_register(to, &result, PREDICATE)
            }
            (
                ["vote", "sync", "ballot", "b32"] | ["vote", "ballot", "sync", "b32"],
                [to, holds, mask],
            ) => {
                let args = self.masked(mask, holds, 1)?;
                let result = self.call("i32", "__gr_vote_ballot", &args);
                self.write_register(to, &result, WORD)
            }
            (["vote", what @ ("all" | "any" | "uni"), "sync", "pred"], operands) => {
                self.threads(&["vote", "sync", what, "pred"], operands)
            }
            (["match", "any", "sync", word @ ("b32" | "b64")], [to, value, mask]) => {
                let bits = Type::read(word)?.bits;
                let args = self.masked(mask, value, bits)?;
                let result = self.call("i32", &format!("__gr_match_any_i{bits}"), &args);
                self.write_register(to, &result, WORD)
            }
            _ => None,
        }
    }

    fn masked(
        &mut self,
        mask: &Operand,
        value: &Operand,
        bits: u32,
    ) -> Option<[(&'static str, String); 2]> {
        let ty = match bits {
            1 => "i1",
            32 => "i32",
            _ => "i64",
        };
        Some([
            ("i32", self.int_operand(mask, 32)?),
            (ty, self.int_operand(value, bits)?),
        ])
    }

    /// Emits a shuffle, and optionally the predicate that the source lane is inside the segment.
    fn shuffle(&mut self, how: &str, to: &Operand, from: [&Operand; 4]) -> Option<()> {
        let how = match how {
            "up" | "down" | "bfly" | "idx" => how,
            _ => return None,
        };
        let mut values = Vec::new();
        for operand in from {
            values.push(self.int_operand(operand, 32)?);
        }
        let [value, by, segment, mask] = &values[..] else {
            return None;
        };
        let args = [mask, value, by, segment].map(|v| ("i32", v.clone()));
        let result = self.call("i32", &format!("__gr_shfl_{how}_i32"), &args);
        let Operand::WithPredicate(to, predicate) = to else {
            return self.write_register(to, &result, WORD);
        };
        let lane = self.call("i32", "__gr_laneid", &[]);
        let by = self.op(&format!("and i32 {by}, 31"));
        let clamp = self.op(&format!("and i32 {segment}, 31"));
        let inner = self.op(&format!("lshr i32 {segment}, 8"));
        let inner = self.op(&format!("and i32 {inner}, 31"));
        let within = self.op(&format!("xor i32 {inner}, 31"));
        let least = self.op(&format!("and i32 {lane}, {inner}"));
        let most = self.op(&format!("and i32 {clamp}, {within}"));
        let most = self.op(&format!("or i32 {least}, {most}"));
        let (asked, condition) = match how {
            "up" => (self.op(&format!("sub i32 {lane}, {by}")), "sge"),
            "down" => (self.op(&format!("add i32 {lane}, {by}")), "sle"),
            "bfly" => (self.op(&format!("xor i32 {lane}, {by}")), "sle"),
            _ => {
                let inside = self.op(&format!("and i32 {by}, {within}"));
                (self.op(&format!("or i32 {least}, {inside}")), "sle")
            }
        };
        let holds = self.op(&format!("icmp {condition} i32 {asked}, {most}"));
        self.write_register(to, &result, WORD)?;
        self.write_register(&Operand::Named(predicate.clone()), &holds, PREDICATE)
    }
}
