//! What each page shows. A view is made from what is known of the cluster, holds texts and numbers only, and
//! is rendered by the template of the same name.

pub(crate) mod arrays;
pub(crate) mod chart_field;
pub(crate) mod confirmation;
pub(crate) mod curve_path;
pub(crate) mod curves;
pub(crate) mod gpu_curves;
pub(crate) mod job;
pub(crate) mod job_row;
pub(crate) mod lanes;
pub(crate) mod log;
pub(crate) mod nodes;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod people;
pub(crate) mod queue;
pub(crate) mod state_badge;
pub(crate) mod timeline;

use cohabit_console::printable_line;

/// Text of other people in one line: what nobody sees is written as its code. Templates escape it for HTML.
pub(crate) fn line(text: &str) -> String {
    printable_line(text).into_owned()
}

/// A value for an address.
pub(crate) fn encoded(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_addresses_are_encoded() {
        assert_eq!(encoded("a-b&c=d/\u{e4} <"), "a-b%26c%3Dd%2F%C3%A4%20%3C");
    }
}
