//! The HTML around the charts: page, style and escaping.

/// Escapes text for HTML.
pub(crate) fn escape_html(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            other => page.push(other),
        }
    }
    page
}

/// A chart with its title and caption.
pub(crate) fn figure(title: &str, caption: &str, svg: &str) -> String {
    let (title, caption) = (escape_html(title), escape_html(caption));
    format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"hint\">{caption}</p>\n<figure>{svg}</figure>\n</section>\n"
    )
}

/// The complete page. It loads nothing from elsewhere.
pub(crate) fn page(title: &str, body: &str) -> String {
    let title = escape_html(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

const STYLE: &str = include_str!("style.css");
