//! How long does it take to build a union of random boxes, and to plan it?
//!
//! The boxes are those of paper 003: cut planes in each dimension, every cell between
//! them with a probability of one half.  Run it with `--release`.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use chunkwise_select::{ChunkGrid, Hyperslab, Plan, Union};

/// A sequence of numbers that looks random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn cells(shape: &[u64], cuts: u64, random: &mut Random) -> Result<Vec<Hyperslab>, Box<dyn Error>> {
    let sides: Vec<Vec<(u64, u64)>> = shape
        .iter()
        .map(|&n| {
            let mut at: Vec<u64> = (0..cuts).map(|_| random.below(n)).chain([0, n]).collect();
            at.sort_unstable();
            at.dedup();
            at.windows(2).map(|pair| (pair[0], pair[1] - pair[0])).collect()
        })
        .collect();
    let counts: Vec<u64> = sides.iter().map(|side| side.len() as u64).collect();
    let grid = ChunkGrid::new(&counts, &vec![1; shape.len()])?;
    let ones = vec![1; shape.len()];
    let mut found = Vec::new();
    for number in 0..grid.len() {
        if random.below(2) == 0 {
            continue;
        }
        let cell = grid.chunk_index(number);
        let (start, block): (Vec<u64>, Vec<u64>) =
            sides.iter().zip(cell).map(|(side, i)| side[i as usize]).unzip();
        found.push(Hyperslab::new(shape, &start, &ones, &ones, &block)?);
    }
    Ok(found)
}

fn scattered(
    shape: &[u64],
    number: u64,
    side: u64,
    random: &mut Random,
) -> Result<Vec<Hyperslab>, Box<dyn Error>> {
    let ones = vec![1; shape.len()];
    let block = vec![side; shape.len()];
    let mut one = || {
        let start: Vec<u64> = shape.iter().map(|&n| random.below(n - side)).collect();
        Ok(Hyperslab::new(shape, &start, &ones, &ones, &block)?)
    };
    (0..number).map(|_| one()).collect()
}

fn report(
    what: &str,
    shape: &[u64],
    chunk: &[u64],
    slabs: &[Hyperslab],
) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let union = Union::new(shape.len(), slabs)?;
    let built = begun.elapsed();
    let grid = ChunkGrid::new(shape, chunk)?;
    let begun = Instant::now();
    let plan = Plan::new(&grid, &union)?;
    let planned = begun.elapsed();
    let begun = Instant::now();
    let (mut strips, mut runs) = (0u64, 0);
    for task in plan.tasks() {
        task.for_each_strip(|strip| {
            strips += 1;
            runs += black_box(strip).count;
        });
    }
    let walked = begun.elapsed();
    println!(
        "{what}: {} hyperslabs, {} elements; built in {built:.1?}, planned in {planned:.1?}, \
         {} of {} chunks with {strips} strips of {runs} runs walked in {walked:.1?}",
        slabs.len(),
        union.len(),
        plan.len(),
        grid.len(),
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let flat = [10_000, 3_000];
    for cuts in [1, 5, 20, 28] {
        let slabs = cells(&flat, cuts, &mut random)?;
        report(&format!("{cuts} cuts"), &flat, &[50, 50], &slabs)?;
    }
    for number in [441, 10_000, 100_000] {
        let slabs = scattered(&flat, number, 20, &mut random)?;
        report("scattered boxes", &flat, &[50, 50], &slabs)?;
    }
    let deep = [60, 300, 90, 717];
    report("4 dimensions", &deep, &[4, 30, 9, 717], &cells(&deep, 14, &mut random)?)?;
    let strided = Hyperslab::new(&flat, &[0, 0], &[2, 2], &[5_000, 1_500], &[1, 1])?;
    report("every other element", &flat, &[50, 50], &[strided])
}
