import Foundation
import Testing

extension SystemTests {
    /// The queues of the SDKs, as those send and repeat, against a daemon that has a bad day.
    @Suite struct SourceQueueTests {
        /// What a client does after an answer.
        enum Step { case done, again, givesUp }

        /// A client with its queue: requests in order, and its rule.
        struct Client {
            let name: String
            let requests: [Request]
            let step: (Answer) throws -> Step
        }

        /// Only an object counts as taken; anything else is sent again, before all that follows.
        static func vibesOnIOS(_ answer: Answer) -> Step {
            guard (200..<300).contains(answer.status), case .object = try? answer.json else {
                return .again
            }
            return .done
        }

        /// As on iOS, but what is neither taken nor 500 is lost.
        static func vibesOnAndroid(_ answer: Answer) -> Step {
            if answer.status == 500 { return .again }
            return vibesOnIOS(answer) == .done ? .done : .givesUp
        }

        static func mapp(_ answer: Answer) throws -> Step {
            let metadata = try answer.json["metadata"]
            if metadata["error"] == .bool(false) { return .done }
            return metadata["shouldRetry"] == .bool(true) ? .again : .givesUp
        }

        static func pushwoosh(_ answer: Answer) throws -> Step {
            if answer.status == 429 || answer.status >= 500 { return .again }
            return try answer.json["status_code"] == .int(200) ? .done : .givesUp
        }

        static func notiPilot(_ answer: Answer) throws -> Step {
            if answer.status == 429 || answer.status >= 500 {
                return try answer.json["retry_after"].int == nil ? .givesUp : .again
            }
            return try answer.json["success"] == .bool(true) ? .done : .givesUp
        }

        static func clients(_ source: SourceApp, count: Int) -> [Client] {
            func vibes(_ prefix: String, _ headers: [(String, String)]) -> [Request] {
                (0..<count).map { number in
                    let id = "\(prefix)\(number)"
                    return source.request(
                        "/mobile_apps/\(source.pathPart)/devices/\(prefix)/events",
                        """
                        {"events":[{"uuid":"\(id)","type":"clickthru","attributes":{
                        "message_uid":"\(id)"}},{"uuid":"\(id)","type":"none such"}]}
                        """, key: "MobileAppToken", headers: headers)
                }
            }
            return [
                Client(
                    name: "Vibes on iOS", requests: vibes("i", SourceTests.ios), step: vibesOnIOS),
                Client(
                    name: "Vibes on Android", requests: vibes("a", SourceTests.android),
                    step: vibesOnAndroid),
                Client(
                    name: "Mapp Engage",
                    requests: (0..<count).map { number in
                        source.request(
                            "/api/push/event",
                            """
                            {"event_type":0,"message_id":"m\(number)","user_id":"u","sendout_id":1}
                            """, key: "X_KEY")
                    }, step: mapp),
                Client(
                    name: "Pushwoosh",
                    requests: (0..<count).map { number in
                        SourceAliasTests.pushwoosh(source, "pushStat", "\"hash\":\"p\(number)\"")
                    }, step: pushwoosh),
                Client(
                    name: "NotiPilot",
                    requests: (0..<count).map { number in
                        source.request(
                            "/api/v1/register-device",
                            #"{"app_id":\#(quote(source.alias)),"device_uid":"n\#(number)"}"#,
                            key: nil)
                    }, step: notiPilot),
            ]
        }

        @Test func everyQueueDrainsAndEachOfItsEventsIsStoredOnce() throws {
            let cluster = try Cluster()
            // Three requests at once, then as many as the rate lets in: queues are refused often.
            let daemon = try Daemon(
                database: cluster.conninfo(),
                settings: [
                    "http.key_requests_per_second_max": "60", "http.key_burst": "50ms",
                    "http.alias_requests_per_second_max": "30", "load.batch_age_ms": "20",
                ]
            ).start()
            let source = try SourceApp(daemon)
            let count = 60
            for client in Self.clients(source, count: count) {
                for (number, request) in client.requests.enumerated() {
                    if number == 20 {
                        // It dies with the request in hand: its answer never comes.
                        let connection = try daemon.connect()
                        try connection.send(request.bytes)
                        try daemon.kill()
                        try daemon.start()
                    }
                    if number == 40 {
                        #expect(try daemon.stop() == .code(0))
                        #expect(throws: Failure.self) { try daemon.send(request) }
                        try daemon.start()
                    }
                    try until("\(client.name) gets rid of request \(number)") {
                        let answer = try daemon.send(request)
                        switch try client.step(answer) {
                        case .done: return true
                        case .again: return nil
                        case .givesUp:
                            throw Failure("\(client.name): \(answer.text)", isFinal: true)
                        }
                    }
                }
            }
            let all = try source.stored()
            let stored = all.filter { !$0.hasPrefix("device_register ") }
            let expected = ["i", "a", "m", "p"].flatMap { prefix in
                (0..<count).map { "\(prefix)\($0)" }
            }
            let messages = stored.map { $0.split(separator: " ")[1] }
            #expect(Set(messages) == Set(expected.map { $0[...] }))
            let registrations = try daemon.sql().int(
                "SELECT count(*) FROM tapline.device_state WHERE app = '\(source.app.name)'")
            #expect(try source.app.count() == expected.count + registrations)
            let devices = all.subtracting(stored).map { $0.split(separator: " ")[2] }
            #expect(Set(devices) == Set((0..<count).map { "n\($0)"[...] }))
            #expect(try daemon.check().exit == .code(0))
        }
    }
}
