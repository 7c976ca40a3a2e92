//! A headless browser, where Debian's `chromium` and `chromium-driver` are installed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use super::http::request;
use crate::kit::{TIMEOUT, say};

/// A browser and its driver.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    pub(crate) client: Client,
    session: String,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) scheme: &'static str,
}

impl Browser {
    /// Starts one; none, with a message, where none is installed.
    pub(crate) async fn start() -> Option<Browser> {
        let mut command = Command::new("chromedriver");
        command.args(["--port=0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut driver) = command.spawn() else {
            say("skipped: no chromedriver (apt-get install chromium chromium-driver)");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            line.contains("started successfully")
                .then(|| line.trim_end_matches('.').rsplit(' ').next()?.parse().ok())?
        });
        let port: u16 = port.expect("the driver says its port");
        // What else it prints is read, or it would wait.
        std::thread::spawn(move || lines.for_each(drop));
        let flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let wanted = json!({
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(wanted.as_object().unwrap().clone());
        let connected = builder.connect(&format!("http://127.0.0.1:{port}")).await;
        let Ok(client) = connected else {
            say("skipped: no browser starts (apt-get install chromium)");
            let _ = driver.kill();
            let _ = driver.wait();
            return None;
        };
        let session = client.session_id().await.unwrap().unwrap();
        Some(Browser { driver, port, client, session })
    }

    /// A command of the driver that `fantoccini` does not know.
    fn command(&self, name: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{name}", self.session);
        let host = format!("127.0.0.1:{}", self.port);
        let headers = [("Host", host.as_str()), ("Content-Type", "application/json")];
        let answer = request(self.port, "POST", &path, &headers, &body.to_string());
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        serde_json::from_str::<Value>(&answer.body).unwrap()["value"].clone()
    }

    fn devtools(&self, method: &str, parameters: &Value) {
        self.command("goog/cdp/execute", &json!({ "cmd": method, "params": parameters }));
    }

    /// The messages on the console since the last call.
    pub(crate) fn console(&self) -> Vec<String> {
        let entries = self.command("se/log", &json!({ "type": "browser" }));
        entries.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// Looks through a window of this width, in these colors.
    pub(crate) fn look_through(&self, screen: Screen) {
        let height = if screen.width < 600 { 844 } else { 900 };
        let metrics =
            json!({ "width": screen.width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": screen.scheme }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Waits for an element.
    pub(crate) async fn until(&self, selector: &str) -> fantoccini::elements::Element {
        let wait = self.client.wait().at_most(TIMEOUT);
        let found = wait.for_element(Locator::Css(selector)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("{selector}: {error}: {}", self.client.source().await.unwrap()),
        }
    }

    /// Waits until a script returns `true`.
    pub(crate) async fn until_true(&self, script: &str) {
        let begin = std::time::Instant::now();
        while self.client.execute(&format!("return {script}"), Vec::new()).await.unwrap() != json!(true) {
            assert!(begin.elapsed() < TIMEOUT, "never: {script}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        let host = format!("127.0.0.1:{}", self.port);
        request(self.port, "DELETE", &path, &[("Host", host.as_str())], "");
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
