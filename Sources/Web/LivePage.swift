import HTTPServer
import Platform

/// `GET /`: a page without data, which asks for a key and shows `/v1/live`.
enum LivePage {
    private static let text = String(decoding: PackageResources.page_html, as: UTF8.self)

    /// The page. Its one script and its one style carry a word that is new each time, and the browser
    /// runs nothing else.
    static func response() -> Response {
        let nonce = Hex.encode(Random.bytes(16))
        let policy =
            "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; "
            + "connect-src 'self'; img-src data:; form-action 'none'; base-uri 'none'; "
            + "frame-ancestors 'none'"
        return Response(
            status: 200,
            headers: [
                ("Content-Type", "text/html; charset=utf-8"), ("Cache-Control", "no-store"),
                ("Content-Security-Policy", policy), ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ], body: Array(text.replacing("NONCE", with: nonce).utf8))
    }
}
