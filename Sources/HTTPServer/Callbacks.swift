internal import CHTTPShim
internal import CMicrohttpd
import Glibc

// The functions that libmicrohttpd calls. Each finds its objects behind the pointers and hands on.
//
// SAFETY: `context` is the engine, which the server keeps until libmicrohttpd has stopped. The
// socket's context is a connection that is retained from STARTED to CLOSED; all calls about one
// connection come from one thread, between these two.

let connectionChanged: MHD_NotifyConnectionCallback = { context, raw, socketContext, change in
    guard let raw = unsafe raw, let socketContext = unsafe socketContext else { return }
    let engine = unsafe engine(context)
    switch change {
    case .CONNECTION_NOTIFY_STARTED:
        let connection = unsafe engine.registry.add(
            socket: tapline_http_socket(raw),
            address: ClientAddress(tapline_http_address(raw)))
        unsafe socketContext.pointee = Unmanaged.passRetained(connection).toOpaque()
    default:
        guard let pointer = unsafe socketContext.pointee else { return }
        let connection = unsafe Unmanaged<Connection>.fromOpaque(pointer).takeRetainedValue()
        unsafe socketContext.pointee = nil
        engine.complete(connection)
        engine.registry.remove(connection)
    }
}

/// Called with the target of each request line, before the headers are read.
let requestLineRead:
    @convention(c) (
        UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?
    ) -> UnsafeMutableRawPointer? = { context, target, raw in
        guard let raw = unsafe raw, let target = unsafe target,
            let connection = unsafe connection(raw)
        else { return nil }
        connection.target = unsafe String(cString: target)
        connection.step = .head
        _ = unsafe engine(context).registry.move(connection, to: .head)
        return nil
    }

let requestProceeds: MHD_AccessHandlerCallback = {
    context, raw, _, method, version, data, dataCount, _ in
    guard let raw = unsafe raw, let method = unsafe method, let version = unsafe version,
        let dataCount = unsafe dataCount, let connection = unsafe connection(raw)
    else { return .NO }
    let body = unsafe UnsafeRawBufferPointer(
        start: data, count: data == nil ? 0 : dataCount.pointee)
    let mayGoOn = unsafe engine(context).proceed(
        raw, connection, method: method, version: version,
        body: body.bindMemory(to: UInt8.self))
    unsafe dataCount.pointee = 0
    return mayGoOn ? .YES : .NO
}

let requestCompleted: MHD_RequestCompletedCallback = { context, raw, _, _ in
    guard let raw = unsafe raw, let connection = unsafe connection(raw) else { return }
    unsafe engine(context).complete(connection)
}

let headerFound: MHD_KeyValueIteratorN = { context, _, name, nameCount, value, valueCount in
    guard let context = unsafe context, let name = unsafe name else { return .NO }
    // SAFETY: the context is the pointer that `receiveHead` passes and keeps valid.
    unsafe context.assumingMemoryBound(to: HeaderFields.self).pointee.append(
        name: UnsafeRawBufferPointer(start: name, count: nameCount),
        value: UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount))
    return .YES
}

/// Called for the next bytes of a stream whenever the client has read those before.
let streamRead: MHD_ContentReaderCallback = { context, _, buffer, count in
    guard let context = unsafe context, let buffer = unsafe buffer else {
        return StreamReader.endWithError
    }
    // SAFETY: the context is a reader that is retained until `streamReleased`.
    let reader = unsafe Unmanaged<StreamReader>.fromOpaque(context).takeUnretainedValue()
    return unsafe reader.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
}

let streamReleased: MHD_ContentReaderFreeCallback = { context in
    guard let context = unsafe context else { return }
    unsafe Unmanaged<StreamReader>.fromOpaque(context).release()
}

private func engine(_ context: UnsafeMutableRawPointer?) -> Engine {
    unsafe Unmanaged<Engine>.fromOpaque(context!).takeUnretainedValue()
}

private func connection(_ raw: OpaquePointer) -> Connection? {
    guard let pointer = unsafe tapline_http_context(raw) else { return nil }
    return unsafe Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue()
}
