//! When was an object changed?
//!
//! Format specification, IV.A.2.o and IV.A.2.s.

use crate::error::FormatError;
use crate::fields::Fields;
use crate::header::{Header, kind};

/// In seconds since 1970.
pub(crate) fn modified(header: &Header<'_>) -> Result<Option<i64>, FormatError> {
    if let Some([_, modified, _, _]) = header.times {
        return Ok(Some(modified.into()));
    }
    if let Some(message) = header.first(kind::MODIFICATION_TIME) {
        let mut fields = message.part.fields();
        fields.version(1)?;
        fields.skip(3)?;
        return Ok(Some(fields.u32()?.into()));
    }
    match header.first(kind::OLD_MODIFICATION_TIME) {
        Some(message) => old(&mut message.part.fields()).map(Some),
        None => Ok(None),
    }
}

/// Digits of a year, month, day, hour, minute and second, in UTC.
fn old(fields: &mut Fields<'_>) -> Result<i64, FormatError> {
    let mut number = |len: u64| -> Result<i64, FormatError> {
        let mut number = 0i64;
        for digit in fields.take(len)? {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return Err(fields.wrong("it is no time"));
            }
            number = number.saturating_mul(10).saturating_add(digit.into());
        }
        Ok(number)
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let (hour, minute, second) = (number(2)?, number(2)?, number(2)?);
    Ok(seconds([year, month, day, hour, minute, second]))
}

/// Seconds since 1970, for numbers of at most four digits.
#[allow(clippy::arithmetic_side_effects)]
fn seconds([year, month, day, hour, minute, second]: [i64; 6]) -> i64 {
    // A year begins in March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn seconds_are_counted_from_1970_on() {
        let days = |year, month, day| seconds([year, month, day, 0, 0, 7]) - 7;
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(1969, 12, 31), -86_400);
        assert_eq!(days(2000, 3, 1), 11_017 * 86_400);
        assert_eq!(days(2024, 2, 29), 19_782 * 86_400);
    }
}
