//! Do frames give back what went in, and survive what is damaged?

use proptest::prelude::*;

use super::Blosc2;
use crate::filter::Options as _;
use crate::{DecodeError, Filter, Pipeline, Scratch};

/// How a frame is written; its streams are LZ4's, or stored where they do not shrink.
#[derive(Debug, Clone)]
struct Options {
    element_size: usize,
    /// Array and block, the same in one dimension if there is only a run of bytes.
    shape: Vec<usize>,
    block: Vec<usize>,
    split: bool,
    delta: bool,
    shuffle: bool,
    byte_delta: bool,
}

impl Options {
    /// As HDF5 states it.
    fn stated(&self) -> Filter {
        let mut cd_values = vec![1, 0, self.element_size as u32, self.len() as u32, 5, 1, 0];
        if self.shape.len() > 1 {
            cd_values.push(self.shape.len() as u32);
            cd_values.extend(self.shape.iter().map(|&n| n as u32));
        }
        Filter::Blosc2(Blosc2::from_cd_values(&cd_values).unwrap())
    }

    fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element_size
    }

    fn block_len(&self) -> usize {
        self.block.iter().product::<usize>() * self.element_size
    }

    /// The blocks one after the other, what is beyond the array zero.
    fn blocks(&self, raw: &[u8]) -> Vec<u8> {
        if self.shape.len() == 1 {
            return raw.to_vec();
        }
        let counts: Vec<usize> =
            self.shape.iter().zip(&self.block).map(|(s, b)| s.div_ceil(*b)).collect();
        let mut out = Vec::new();
        for number in 0..counts.iter().product() {
            let corner = unravel(number, &counts);
            for within in 0..self.block.iter().product() {
                let mut at = Some(0);
                for (dim, i) in unravel(within, &self.block).into_iter().enumerate() {
                    let i = corner[dim] * self.block[dim] + i;
                    at = at.filter(|_| i < self.shape[dim]).map(|at| at * self.shape[dim] + i);
                }
                match at {
                    Some(at) => out.extend(&raw[at * self.element_size..][..self.element_size]),
                    None => out.extend(vec![0; self.element_size]),
                }
            }
        }
        out
    }

    fn chunk(&self, raw: &[u8]) -> Vec<u8> {
        let data = self.blocks(raw);
        let block_len = self.block_len().min(data.len());
        let mut header = vec![5, 1, 1 | 4 | 1 << 5, self.element_size as u8];
        if !self.split {
            header[2] |= 16;
        }
        header.extend((data.len() as u32).to_le_bytes());
        header.extend((block_len as u32).to_le_bytes());
        let mut filters = [0u8; 16];
        for (slot, (used, number)) in
            [(self.delta, 3), (self.shuffle, 1), (self.byte_delta, 35)].into_iter().enumerate()
        {
            filters[slot + 3] = if used { number } else { 0 };
        }
        let mut streams = Vec::new();
        let mut starts = Vec::new();
        let blocks = data.chunks(block_len);
        let first = 32 + 4 * blocks.len();
        for block in blocks {
            starts.extend(((first + streams.len()) as u32).to_le_bytes());
            let filtered = self.filter(block, starts.len() == 4, &data);
            let split = self.split && block.len() == block_len;
            let count = if split { self.element_size } else { 1 };
            filtered.chunks(block.len() / count).for_each(|one| streams.extend(stream(one)));
        }
        header.extend(((first + streams.len()) as u32).to_le_bytes());
        [&header, &filters[..], &starts, &streams].concat()
    }

    fn filter(&self, block: &[u8], first: bool, data: &[u8]) -> Vec<u8> {
        let size = self.element_size;
        let mut out = block.to_vec();
        if self.delta {
            let width = if matches!(size, 1 | 2 | 4 | 8) { size } else { 1 };
            let whole = out.len() / width * width;
            for at in if first { width..whole } else { 0..whole } {
                out[at] ^= data[if first { at - width } else { at }];
            }
        }
        if self.shuffle {
            let elements = out.len() / size;
            let moved = (0..size).flat_map(|j| (0..elements).map(move |i| i * size + j));
            out = moved.map(|at| out[at]).collect();
        }
        if self.byte_delta {
            for plane in out.chunks_mut(block.len() / size) {
                for at in (1..plane.len()).rev() {
                    plane[at] = plane[at].wrapping_sub(plane[at - 1]);
                }
            }
        }
        out
    }

    fn frame(&self, raw: &[u8]) -> Vec<u8> {
        let chunk = self.chunk(raw);
        let mut layers = vec![0x93, 0xcd, 0, 0, 0xde, 0, u8::from(self.shape.len() > 1)];
        if self.shape.len() > 1 {
            let rank = self.shape.len() as u8;
            let mut content = vec![0x97, 0, rank];
            content.push(0x90 | rank);
            for n in &self.shape {
                content.push(0xd3);
                content.extend((*n as u64).to_be_bytes());
            }
            for shape in [&self.shape, &self.block] {
                content.push(0x90 | rank);
                for n in shape {
                    content.push(0xd2);
                    content.extend((*n as u32).to_be_bytes());
                }
            }
            content.extend(b"\0\xdb\0\0\0\x03|V1");
            layers.extend(b"\xa4b2nd\xd2");
            layers.extend((0x57 + layers.len() as u32 + 4).to_be_bytes());
            layers.push(0xc6);
            layers.extend((content.len() as u32).to_be_bytes());
            layers.extend(content);
        }
        let mut frame = b"\x9e\xa8b2frame\0\xd2".to_vec();
        frame.extend((0x57 + layers.len() as u32).to_be_bytes());
        frame.resize(0x57, 0);
        frame[0x19] = 0x12;
        frame[0x1e..0x26].copy_from_slice(&(self.blocks(raw).len() as u64).to_be_bytes());
        frame[0x27..0x2f].copy_from_slice(&(chunk.len() as u64).to_be_bytes());
        frame[0x30..0x34].copy_from_slice(&(self.element_size as u32).to_be_bytes());
        // The list of chunks: one stored number, 0.
        let mut list = vec![5, 1, 1 | 2 | 4, 8, 8, 0, 0, 0, 8, 0, 0, 0, 40];
        list.resize(40, 0);
        frame[0x3a..0x3e].copy_from_slice(&(self.blocks(raw).len() as u32).to_be_bytes());
        frame[0x46] = 6;
        let mut trailer = vec![0x94, 1, 0x93, 0xcd, 0, 6, 0xde, 0, 0, 0xdc, 0, 0];
        trailer.extend([0xce, 0, 0, 0, 35, 0xd8]);
        trailer.resize(35, 0);
        let mut whole = [frame, layers, chunk, list, trailer].concat();
        let len = whole.len() as u64;
        whole[0x10..0x18].copy_from_slice(&len.to_be_bytes());
        whole
    }
}

fn unravel(mut number: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, n) in index.iter_mut().zip(shape).rev() {
        *i = number % n;
        number /= n;
    }
    index
}

fn stream(raw: &[u8]) -> Vec<u8> {
    if raw.iter().all(|&byte| byte == raw[0]) {
        return match raw[0] {
            0 => vec![0; 4],
            byte => [&(-i32::from(byte)).to_le_bytes()[..], &[1]].concat(),
        };
    }
    let mut packed = vec![0u8; raw.len()];
    // SAFETY: the lengths are those of the slices.
    let len = unsafe {
        lz4_sys::LZ4_compress_default(
            raw.as_ptr().cast(),
            packed.as_mut_ptr().cast(),
            raw.len() as i32,
            raw.len() as i32 - 1,
        )
    };
    let stored = if len > 0 { &packed[..len as usize] } else { raw };
    [&(stored.len() as u32).to_le_bytes()[..], stored].concat()
}

fn options() -> impl Strategy<Value = Options> {
    let dims = prop_oneof![
        prop::collection::vec((1usize..200, 1usize..60), 1),
        prop::collection::vec((1usize..12, 1usize..6), 2..5),
    ];
    let size = prop::sample::select(vec![1, 2, 3, 4, 8, 12]);
    (dims, size, any::<[bool; 4]>()).prop_map(
        |(dims, element_size, [split, delta, shuffle, sums])| {
            let (shape, block) =
                dims.into_iter().map(|(shape, block)| (shape, block.min(shape))).unzip();
            let byte_delta = sums && shuffle;
            Options { element_size, shape, block, split, delta, shuffle, byte_delta }
        },
    )
}

fn bytes_of(options: &Options, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        if seed.is_multiple_of(3) { 7 } else { (state >> 60) as u8 }
    };
    (0..options.len()).map(next).collect()
}

proptest! {
    #[test]
    fn decodes_what_was_encoded(options in options(), seed in any::<u64>()) {
        let raw = bytes_of(&options, seed);
        let mut out = vec![9; raw.len()];
        let decoded = Pipeline::new(vec![options.stated()])
            .decode(&options.frame(&raw), 0, &mut Scratch::default(), &mut out);
        prop_assert_eq!(decoded, Ok(()));
        prop_assert_eq!(out, raw);
    }

    /// An error or bytes, never a panic.
    #[test]
    fn survives_damage(
        options in options(),
        seed in any::<u64>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let raw = bytes_of(&options, seed);
        let mut frame = options.frame(&raw);
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        if cuts {
            frame.truncate(cut.index(frame.len()));
        }
        let mut out = vec![9; raw.len()];
        let _ = Pipeline::new(vec![options.stated()])
            .decode(&frame, 0, &mut Scratch::default(), &mut out);
    }
}

#[test]
fn what_is_of_another_kind_is_not_called_damaged() {
    let options = Options {
        element_size: 4,
        shape: vec![100],
        block: vec![50],
        split: false,
        delta: false,
        shuffle: true,
        byte_delta: false,
    };
    let frame = options.frame(&[1; 400]);
    let decode = |at: usize, byte: u8| {
        let mut frame = frame.clone();
        frame[at] = byte;
        let mut out = [0; 400];
        Pipeline::new(vec![options.stated()]).decode(&frame, 0, &mut Scratch::default(), &mut out)
    };
    let chunk = 0x57 + 7;
    assert_eq!(decode(chunk, 5), Ok(()));
    for (at, byte) in [
        (0x1a, 1),
        (0x4a, 5),
        (0x4c, 127),
        (chunk + 2, 1),
        (chunk + 2, 1 | 4 | 7 << 5),
        (chunk + 16, 33),
        (chunk + 16, 1),
        (chunk + 30, 1),
        (chunk + 31, 1),
    ] {
        assert!(matches!(decode(at, byte), Err(DecodeError::Unsupported { .. })), "{at} {byte}");
    }
    assert_eq!(decode(3, 0), Err(super::damage::DAMAGED));
}

#[test]
fn what_its_filter_refuses_is_left_to_it() {
    let of_two = [1, 0, 4, 100, 5, 1, 0, 2, 5, 5];
    let known = |cd_values: &[u32]| Blosc2::from_cd_values(cd_values).is_some();
    assert!(known(&of_two) && known(&of_two[..7]) && known(&of_two[..4]));
    assert!(!known(&of_two[..3]));
    for (place, value) in [(5, 5), (6, 3)] {
        let mut other = of_two;
        other[place] = value;
        assert!(!known(&other));
    }
    // Damage has left more dimensions, or fewer, than there are lengths.
    for rank in [0, 1, 3, 258, u32::MAX] {
        let mut damaged = of_two;
        damaged[7] = rank;
        assert!(!known(&damaged), "{rank}");
    }
}

#[test]
fn arrays_that_are_not_of_the_stated_shape_are_left_to_its_filter() {
    let options = Options {
        element_size: 4,
        shape: vec![6, 10],
        block: vec![3, 10],
        split: false,
        delta: false,
        shuffle: true,
        byte_delta: false,
    };
    let frame = options.frame(&[1; 240]);
    let decode = |cd_values: &[u32]| {
        let filter = Filter::Blosc2(Blosc2::from_cd_values(cd_values).unwrap());
        let mut out = [0; 240];
        Pipeline::new(vec![filter]).decode(&frame, 0, &mut Scratch::default(), &mut out)
    };
    assert_eq!(decode(&[1, 0, 4, 240, 5, 1, 0, 2, 6, 10]), Ok(()));
    // Older filters compare no shapes, and state none.
    assert_eq!(decode(&[1, 0, 4, 240]), Ok(()));
    for stated in [
        [1, 0, 4, 240, 5, 1, 0, 2, 65286, 10],
        [1, 0, 4, 240, 5, 1, 0, 2, 10, 6],
        [1, 0, 2, 240, 5, 1, 0, 2, 6, 10],
        [1, 0, 4, 239, 5, 1, 0, 2, 6, 10],
    ] {
        assert!(matches!(decode(&stated), Err(DecodeError::Unsupported { .. })), "{stated:?}");
    }
}
