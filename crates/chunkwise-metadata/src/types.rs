//! What are types called, and where does their text end?

use chunkwise_format::{Bits, ByteOrder, Charset, Class, Datatype, Text};

/// The type as NumPy writes it: numbers as h5py reads them without a conversion, text of a fixed
/// length (``S`` of ASCII, ``U`` of UTF-8), ``O`` of text of any length; None of others.
#[must_use]
pub fn type_of(datatype: &Datatype) -> Option<String> {
    let nbytes = datatype.nbytes;
    let order = |bits: &Bits| {
        let plain = bits.offset == 0 && u32::from(bits.precision) == nbytes * 8;
        match bits.order {
            _ if !plain => None,
            _ if nbytes == 1 => Some('|'),
            ByteOrder::Little => Some('<'),
            ByteOrder::Big => Some('>'),
            ByteOrder::Vax => None,
        }
    };
    match &datatype.class {
        Class::Integer { bits, signed } if [1, 2, 4, 8].contains(&nbytes) => {
            Some(format!("{}{}{nbytes}", order(bits)?, if *signed { 'i' } else { 'u' }))
        }
        Class::Float { bits, float } => {
            let parts = (
                float.mantissa_bits,
                float.exponent,
                float.exponent_bits,
                float.sign,
                float.exponent_bias,
            );
            let ieee = match nbytes {
                2 => parts == (10, 10, 5, 15, 15),
                4 => parts == (23, 23, 8, 31, 127),
                8 => parts == (52, 52, 11, 63, 1023),
                _ => false,
            };
            let plain = ieee && float.mantissa == 0 && float.normalization == 2;
            plain.then_some(format!("{}f{nbytes}", order(bits)?))
        }
        Class::Text(Text { charset, .. }) => match charset {
            Charset::Ascii => Some(format!("S{nbytes}")),
            Charset::Utf8 => Some(format!("U{nbytes}")),
            Charset::Other(_) => None,
        },
        Class::LongText { text, .. } => match text.charset {
            Charset::Ascii => Some("O:ascii".into()),
            Charset::Utf8 => Some("O:utf-8".into()),
            Charset::Other(_) => None,
        },
        _ => None,
    }
}

/// Text of a fixed length as libhdf5 gives it to h5py, which fills with zeros.
#[must_use]
pub fn trimmed<'v>(text: &Text, value: &'v [u8]) -> &'v [u8] {
    const ENDS_WITH_ZERO: u8 = 0;
    const FILLED_WITH_BLANKS: u8 = 2;
    let len = match text.padding {
        ENDS_WITH_ZERO => value.iter().position(|&byte| byte == 0),
        FILLED_WITH_BLANKS => value.iter().rposition(|&byte| byte != b' ').map(|last| last + 1),
        _ => None,
    };
    let blank = text.padding == FILLED_WITH_BLANKS && value.iter().all(|&byte| byte == b' ');
    let kept = if blank { &[] } else { &value[..len.unwrap_or(value.len())] };
    let end = kept.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &kept[..end]
}
