//! IR programs: memory that holds pointers and single-precision floats in turn, accessed by lanes under masks.

use super::Writer;

/// The slots of eight bytes.
const SLOTS: u32 = 4;

impl Writer<'_> {
    /// Emits rounds that set all slots to addresses, read one, and store floats under a mask over another.
    pub(super) fn retyped_memory(&mut self) {
        let Some(number) = self.retyped_memory else {
            // Not an error: the program has no such memory.
            return;
        };
        self.note("floats over pointers under a mask");
        let block = match number % 2 {
            0 => self.value("alloca [4 x ptr], 1"),
            _ => {
                let block = self.value("call @malloc(32)");
                self.heap.push(block.clone());
                block
            }
        };
        for _ in 0..2 + self.random.below(2) {
            match self.random.below(2) {
                0 => self.addresses_by_loop(&block),
                _ => self.addresses_by_lanes(&block),
            }
            let slot = self.int();
            let slot = self.value(format!("and {slot}, {}", SLOTS - 1));
            let at = self.value(format!("addr inbounds ptr, {block}, {slot}"));
            let cell = self.value(format!("load {at} -> ptr"));
            let number = self.value(format!("load {cell} -> f64"));
            self.floats.push(number);
            for _ in 0..1 + self.random.below(2) {
                self.floats_by_lanes(&block);
            }
        }
    }

    fn addresses_by_loop(&mut self, block: &str) {
        let (i, to, cell) = (self.name(), self.name(), self.name());
        self.line(format!(
            "for {i} < {SLOTS} {{\n{to} = addr inbounds ptr, {block}, {i}\n\
             {cell} = addr inbounds f64, %x, {i}\nstore {cell}, {to}\nyield\n}}"
        ));
    }

    fn addresses_by_lanes(&mut self, block: &str) {
        for slot in [0, 2] {
            let first = self.cell();
            let second = self.cell();
            let half = self.value(format!("insertelement <2 x ptr> poison, {first}, 0"));
            let both = self.value(format!("insertelement {half}, {second}, 1"));
            let at = self.value(format!("addr inbounds ptr, {block}, {slot}"));
            self.line(format!(
                "call @llvm.masked.store.v2p0.p0({both}, {at}, <2 x i1> splat 2 true)"
            ));
        }
    }

    fn floats_by_lanes(&mut self, block: &str) {
        let mut lanes = String::from("<2 x f32> poison");
        for lane in 0..2 {
            let number = self.float();
            let number = self.bounded(&number);
            let short = self.value(format!("fptrunc {number} -> f32"));
            lanes = self.value(format!("insertelement {lanes}, {short}, {lane}"));
        }
        let slot = self.random.below(SLOTS);
        let at = self.value(format!("addr inbounds ptr, {block}, {slot}"));
        let mask = self.value(format!("fcmp olt {lanes}, <2 x f32> splat 2 0.25"));
        self.line(format!(
            "call @llvm.masked.store.v2f32.p0({lanes}, {at}, {mask})"
        ));
        let other = self.value(format!("fmul {lanes}, <2 x f32> splat 2 0.5"));
        let seen = self.value(format!(
            "call @llvm.masked.load.v2f32.p0({at}, {mask}, {other})"
        ));
        for lane in 0..2 {
            let short = self.value(format!("extractelement {seen}, {lane}"));
            let number = self.value(format!("fpext {short} -> f64"));
            self.floats.push(number);
        }
    }
}
