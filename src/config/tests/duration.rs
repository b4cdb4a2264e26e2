//! Durations in Go's form.

use std::time::Duration;

use proptest::prelude::*;

use super::super::duration::{Nanoseconds, parse_go, parse_time};

fn read(text: &str) -> Option<Duration> {
    parse_go(text).and_then(Nanoseconds::to_duration)
}

#[test]
fn every_form_of_go_is_read() {
    let nanoseconds = |count| Some(Duration::from_nanos(count));
    for (text, expected) in [
        ("0", nanoseconds(0)),
        ("+0", nanoseconds(0)),
        ("0s", nanoseconds(0)),
        ("5ns", nanoseconds(5)),
        ("5us", nanoseconds(5_000)),
        ("5µs", nanoseconds(5_000)),
        ("5ms", nanoseconds(5_000_000)),
        ("1m", nanoseconds(60_000_000_000)),
        ("1.5s", nanoseconds(1_500_000_000)),
        (".5s", nanoseconds(500_000_000)),
        ("1.s", nanoseconds(1_000_000_000)),
        ("1h30m10.25s", nanoseconds(5_410_250_000_000)),
        ("", None),
        ("-", None),
        ("-1s", None),
        ("5", None),
        (".s", None),
        ("1.2.3s", None),
        ("s", None),
        ("5 s", None),
        ("5d", None),
        ("300000h1000000000h", None),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn a_bare_number_is_of_milliseconds() {
    let time = parse_time("1500").unwrap();
    assert_eq!((time.duration, time.bare), (Duration::from_millis(1500), true));
    let time = parse_time("15s").unwrap();
    assert_eq!((time.duration, time.bare), (Duration::from_secs(15), false));
    for text in ["-1", "-1s"] {
        assert_eq!(parse_time(text), Err("is negative; allowed: 0 or more".to_owned()), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(h in 0_u64..1000, m in 0_u64..60, s in 0_u64..60, ms in 0_u64..1000) {
        let expected = Duration::from_millis(((h * 60 + m) * 60 + s) * 1000 + ms);
        prop_assert_eq!(read(&format!("{h}h{m}m{s}s{ms}ms")), Some(expected));
        prop_assert_eq!(read(&format!("{h}h{m}m{s}.{ms:03}s")), Some(expected));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9.nuµmshx ]{0,16}") {
        let _ = parse_time(&text);
    }
}
