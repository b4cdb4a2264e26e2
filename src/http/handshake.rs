//! TCP to TLS, and a plain answer for plain HTTP that came to the wrong door.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

/// What Go answers, to the letter.
const WRONG_DOOR: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// How long the client may take to read that.
const WRONG_DOOR_TIME: Duration = Duration::from_secs(1);

/// The encrypted stream, or why there is none.
pub(super) async fn accept(
    mut stream: TcpStream,
    config: Arc<ServerConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    match stream.peek(&mut first).await? {
        // A port check: connected, and left.
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        _ if first[0] == HANDSHAKE => {}
        _ if first[0].is_ascii_uppercase() => {
            let _ = tokio::time::timeout(WRONG_DOOR_TIME, turn_away(&mut stream)).await;
            return Err(io::Error::other("plain HTTP"));
        }
        _ => return Err(io::Error::other("neither TLS nor HTTP")),
    }
    TlsAcceptor::from(config).accept(stream).await
}

/// Reads what comes before it closes: with bytes unread the kernel would reset the connection,
/// and the client would not see the answer.
async fn turn_away(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(WRONG_DOOR).await?;
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Whether client and server agreed on HTTP/2.
pub(super) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(b"h2")
}
