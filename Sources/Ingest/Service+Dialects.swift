import HTTPServer
import Platform

/// The requests of sources: the same checks as for our own events, and answers in their words.
extension IngestService {
    func serve(_ call: any DialectCall, _ exchange: Exchange) {
        do throws(ServiceRefusal) {
            try check(exchange, call.methods)
            if let refusal = call.unserved { throw refusal }
            try checkIsTaking()
            let head = try EventsHead(exchange, isDialect: true)
            if call.isOpen, !ServiceKeys.hasKey(exchange.headers) {
                let body = ServiceBody(
                    self, exchange, app: nil, key: [], head: head, call: call)
                return exchange.accept(body: body)
            }
            try withKey(exchange, roles: [.ingest], for: call) {
                service, app, key throws(ServiceRefusal) in
                _ = try service.app(app, vendorApp: call.vendorApp)
                let body = ServiceBody(
                    service, exchange, app: app, key: key, head: head, call: call)
                exchange.accept(body: body)
            }
        } catch {
            refuse(exchange, error, call)
        }
    }

    /// Answers a request that is refused, in the words of its source if it has one.
    func refuse(_ exchange: Exchange, _ refusal: ServiceRefusal, _ call: (any DialectCall)?) {
        answer(exchange, Self.response(to: refusal, call))
    }

    static func response(to refusal: ServiceRefusal, _ call: (any DialectCall)?) -> Response {
        call?.answer(refused: refusal) ?? refusal.response
    }

    /// The app that events go to.
    ///
    /// - Parameters:
    ///   - app: That of the key; nil without one.
    ///   - vendorApp: The vendor's id of the app, which has to be of the same, or stands for it.
    func app(_ app: [UInt8]?, vendorApp: String?) throws(ServiceRefusal) -> [UInt8] {
        guard let app else {
            guard let vendorApp else { throw .noKeyAndNoApp }
            guard let found = try self.app(ofAlias: vendorApp) else {
                throw .unknownAlias(vendorApp)
            }
            guard found.isOpen else { throw .aliasNeedsKey(vendorApp) }
            if let refusal = aliasRates.admit(Array(vendorApp.utf8)) {
                note(refusal, of: "alias", found.app)
                throw .tooManyRequests(refusal, of: "this app id without a key")
            }
            return found.app
        }
        guard let vendorApp, !app.elementsEqual(vendorApp.utf8) else { return app }
        guard let found = try self.app(ofAlias: vendorApp) else {
            throw .unknownVendorApp(vendorApp)
        }
        guard found.app == app else { throw .wrongVendorApp(vendorApp) }
        return app
    }

    /// The app that an alias stands for, and whether it does without a key; nil when it is none.
    private func app(
        ofAlias alias: String
    ) throws(ServiceRefusal) -> (app: [UInt8], isOpen: Bool)? {
        switch keys.lookup(alias: alias) {
        case .known(let app, let isOpen): return (app: app, isOpen: isOpen)
        case .unknown: return nil
        case .unavailable: throw .aliasesUnavailable(alias)
        }
    }
}
