//! A list whose nodes are freed after the last use, by a call that may unwind: the result is live across
//! the call.
struct Node { value: f64, next: Option<Box<Node>> }

fn reversed_sum(x: &[f64]) -> f64 {
    let mut head: Option<Box<Node>> = None;
    for v in x { head = Some(Box::new(Node { value: v * v, next: head })) }
    let mut turned = None;
    while let Some(mut node) = head {
        head = node.next.take();
        node.next = turned;
        node.value *= x[0];
        turned = Some(node)
    }
    let (mut sum, mut weight, mut at) = (0.0, 1.0, &turned);
    while let Some(node) = at {
        sum += node.value * weight * node.value;
        weight += 1.0;
        at = &node.next
    }
    sum
}

#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    reversed_sum(x) * 0.1
}
