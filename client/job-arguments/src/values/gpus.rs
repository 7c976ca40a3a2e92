//! `--gpus`: the number of devices on all nodes together, or the share of one device.

use cohabit_client::types::{GpuRequest, Share};

/// Parses `0`, `4`, `0.5`: whole devices, or a share of one in thousandths.
pub fn parse_gpus(text: &str) -> Result<GpuRequest, String> {
    let thousandths = thousandths(text).ok_or_else(|| {
        format!("'{text}' is not a number of GPUs: write whole GPUs (1, 4), a share of one (0.5) or none (0)")
    })?;
    match (thousandths / 1_000, thousandths % 1_000) {
        (whole, 0) => Ok(GpuRequest::Whole(whole)),
        (0, part) => Ok(GpuRequest::Part(Share(part))),
        (whole, _) => Err(format!(
            "{text} GPUs are not possible: a job gets whole GPUs or a share of one; ask for 0.5, {whole} or {}",
            whole + 1
        )),
    }
}

/// Divides `total` evenly among `nodes`; without a total, each node gets one device.
pub fn divide_among_nodes(total: Option<GpuRequest>, nodes: u32) -> Result<GpuRequest, String> {
    match total {
        None => Ok(GpuRequest::Whole(1)),
        Some(GpuRequest::Part(share)) if nodes > 1 => Err(format!(
            "--gpus {share} is a share of one GPU, but --nodes asks for {nodes} nodes: ask for a multiple of {nodes} \
             GPUs"
        )),
        Some(GpuRequest::Whole(count)) if nodes > 0 && !count.is_multiple_of(nodes) => Err(format!(
            "--gpus {count} is the total of all nodes and cannot be divided evenly among {nodes}: ask for a multiple of \
             {nodes}"
        )),
        Some(GpuRequest::Whole(count)) => Ok(GpuRequest::Whole(count / nodes.max(1))),
        Some(part @ GpuRequest::Part(_)) => Ok(part),
    }
}

/// A decimal number with at most three decimal places, times a thousand.
fn thousandths(text: &str) -> Option<u32> {
    let (whole, places) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || places.is_empty() || places.len() > 3 || !are_digits(whole) || !are_digits(places) {
        return None;
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    format!("{places:0<3}").parse::<u32>().ok()?.checked_add(whole.checked_mul(1_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_gpus_and_shares_are_parsed() {
        assert_eq!(parse_gpus("4"), Ok(GpuRequest::Whole(4)));
        assert_eq!(parse_gpus("0"), Ok(GpuRequest::Whole(0)));
        assert_eq!(parse_gpus("1.0"), Ok(GpuRequest::Whole(1)));
        assert_eq!(parse_gpus("0.5"), Ok(GpuRequest::Part(Share(500))));
        assert_eq!(parse_gpus(".125"), Ok(GpuRequest::Part(Share(125))));
        for bad in ["", "1.", "-1", "+1", "half", "0.0005", "1e3", "9999999999"] {
            assert!(parse_gpus(bad).unwrap_err().contains("not a number of GPUs"), "{bad}");
        }
        assert!(parse_gpus("1.5").unwrap_err().contains("ask for 0.5, 1 or 2"));
    }

    #[test]
    fn a_total_that_cannot_be_divided_evenly_is_an_error() {
        assert_eq!(divide_among_nodes(None, 3), Ok(GpuRequest::Whole(1)));
        assert_eq!(divide_among_nodes(Some(GpuRequest::Whole(8)), 2), Ok(GpuRequest::Whole(4)));
        assert_eq!(divide_among_nodes(Some(GpuRequest::Whole(0)), 2), Ok(GpuRequest::Whole(0)));
        assert_eq!(
            divide_among_nodes(Some(GpuRequest::Part(Share(500))), 1),
            Ok(GpuRequest::Part(Share(500)))
        );
        assert!(divide_among_nodes(Some(GpuRequest::Whole(3)), 2).unwrap_err().contains("multiple of 2"));
        assert!(
            divide_among_nodes(Some(GpuRequest::Part(Share(500))), 2)
                .unwrap_err()
                .contains("share of one GPU")
        );
    }
}
