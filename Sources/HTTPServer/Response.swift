/// An answer: complete in memory, or written while the client reads it.
package struct Response: Sendable {
    /// The status code.
    package var status: Int
    /// Headers but for `Date`, `Content-Length` and `Connection`, which the server writes.
    package var headers: [(name: String, value: String)]
    /// The body, sent with its length; a HEAD request gets the length alone.
    package var body: [UInt8]
    /// What follows in place of the body, in chunks, until it is finished.
    package var stream: ResponseStream?
    /// Whether the connection ends after this answer.
    package var closesConnection: Bool

    /// Creates an answer.
    package init(
        status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        closesConnection: Bool = false
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.closesConnection = closesConnection
    }

    /// Creates an answer with a body of JSON.
    ///
    /// - Parameters:
    ///   - status: The status code.
    ///   - json: The body, which is sent as it is.
    ///   - headers: Further headers.
    package static func json(
        status: Int, _ json: String, headers: [(name: String, value: String)] = []
    ) -> Response {
        Response(
            status: status, headers: [("Content-Type", "application/json")] + headers,
            body: Array(json.utf8))
    }

    /// Creates an answer of 200 that goes on until `stream` is finished or the client has gone.
    package static func stream(
        _ stream: ResponseStream, headers: [(name: String, value: String)]
    ) -> Response {
        var response = Response(status: 200, headers: headers)
        response.stream = stream
        return response
    }

    /// The answer as bytes of HTTP/1.1, for a connection that ends with it.
    func serialized(reason: String) -> [UInt8] {
        var head = "HTTP/1.1 \(status) \(reason)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        head += "Content-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        return Array(head.utf8) + body
    }
}
