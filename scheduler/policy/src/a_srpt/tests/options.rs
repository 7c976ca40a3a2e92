//! Options as users write them.

use cohabit_types::Span;

use crate::a_srpt::{ASrptOptions, QueueMode, QueueOrder, StarvationBarrier, VirtualAlpha};
use crate::mapping::Toggle;

fn set(pairs: &[(&str, &str)]) -> Result<ASrptOptions, String> {
    let mut options = ASrptOptions::default();
    pairs.iter().try_for_each(|(key, value)| options.set(key, value))?;
    Ok(options)
}

#[test]
fn every_key_sets_its_option() {
    let values = ["2.5", "0.5", "90", "strict", "turn", "block", "on", "lower-bound", "off"];
    let pairs: Vec<(&str, &str)> = ASrptOptions::KEYS.into_iter().zip(values).collect();
    let expected = ASrptOptions {
        theta: 2.5,
        delta: 0.5,
        tau: Some(Span::from_secs(90)),
        queue_mode: QueueMode::Strict,
        queue_order: QueueOrder::Turn,
        starvation_barrier: StarvationBarrier::Block,
        eager_start: Toggle::On,
        virtual_alpha: VirtualAlpha::LowerBound,
        virtual_machine: Toggle::Off,
    };
    assert_eq!(set(&pairs), Ok(expected));
    assert_eq!(set(&[("tau", "90"), ("tau", "none")]), Ok(ASrptOptions::default()));
}

#[test]
fn an_error_says_what_is_wrong_and_what_is_allowed() {
    let refuse = |key, value| set(&[(key, value)]).unwrap_err();
    assert_eq!(refuse("theta", "0.9"), "theta is '0.9': use a number of at least 1, or inf");
    assert_eq!(refuse("delta", "nan"), "delta is 'nan': use a number of at least 0, or inf");
    assert_eq!(refuse("tau", "-1"), "tau is '-1': use a number of seconds, or none");
    assert_eq!(refuse("queue", "lifo"), "queue is 'lifo': use greedy or strict");
    assert!(
        refuse("speed", "1").starts_with("a-srpt has no parameter 'speed': use one of theta, delta, tau")
    );
}
