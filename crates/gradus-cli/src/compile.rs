//! The compiling process: bytes in, bytes out, in a thread with room for LLVM's recursions.

use crate::FAILED;
use gradus::pipeline::compile_bytes;
use std::io::{Read, Write};
use std::time::Instant;

/// LLVM recurses over the depth of what it is given; ours does not.
const STACK_BYTES: usize = 1 << 30;

/// Serves one request.
pub fn run() -> u8 {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(serve);
    let served = thread.ok().and_then(|t| t.join().ok());
    match served {
        Some(Ok(())) => 0,
        _ => FAILED,
    }
}

fn serve() -> std::io::Result<()> {
    let mut request = Vec::new();
    std::io::stdin().lock().read_to_end(&mut request)?;
    let start = Instant::now();
    let mut clock = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let reply = compile_bytes(&request, &mut clock);
    let reply = reply.map_err(|e| std::io::Error::other(e.to_string()))?;
    let mut out = std::io::stdout().lock();
    out.write_all(&reply)?;
    out.flush()
}
