//! The connection to the API server.

use kube::{Client, Config};

/// Why the API server cannot be asked. One line.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There are no credentials.
    #[error(
        "no access to the API server: {0}; in a pod set automountServiceAccountToken to true, \
         elsewhere KUBECONFIG"
    )]
    NoCredentials(String),
    /// The credentials cannot be used.
    #[error("no access to the API server: {0}")]
    Unusable(String),
}

/// A client with the pod's service account, or with `KUBECONFIG`. Connects nothing yet.
pub(super) async fn connect() -> Result<Client, ClusterError> {
    let config = Config::infer()
        .await
        .map_err(|error| ClusterError::NoCredentials(one_line(&error.to_string())))?;
    Client::try_from(config).map_err(|error| ClusterError::Unusable(one_line(&error.to_string())))
}

/// Errors of several lines would tear the log apart.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
