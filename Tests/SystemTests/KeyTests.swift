import Foundation
import Testing

extension SystemTests {
    /// Keys: who may do what, from when and until when.
    @Suite struct KeyTests {
        @Test func bearerAndBasicCarryTheSameKey() throws {
            let app = try Shared.app()
            let basic = Data("\(app.key):".utf8).base64EncodedString()
            for header in ["Bearer \(app.key)", "bearer \(app.key)", "Basic \(basic)"] {
                let request = Request.events(App.click("m"), key: nil)
                #expect(try app.daemon.send(request.with("Authorization", header)).status == 200)
            }
            #expect(try app.storedCount() == 1)
        }

        @Test func aKeyOfTheWrongKindIsForbidden() throws {
            let app = try Shared.app()
            let reader = try app.daemon.key(app.name, role: "read")
            let request = Request.events(App.click("m"), key: reader)
            try StatusTests.expectRefusal(try app.daemon.send(request), 403)
            #expect(try app.storedCount() == 0)
        }

        @Test func aKeyServesItsOwnAppOnly() throws {
            let first = try Shared.app()
            let second = try Shared.app()
            try first.store([App.click("m")])
            try second.store([App.click("m", #","app":"\#(first.name)""#)])
            #expect(try first.count() == 1)
            #expect(try second.count() == 1)
        }

        @Test func aNewKeyWorksAtOnceAndARevokedOneStopsWithin5Seconds() throws {
            let app = try Shared.app()
            #expect(try app.post(App.click("m")).status == 200)
            let revoked = try Tapline.run(["key", "revoke", app.key] + app.daemon.store)
            #expect(revoked.isSuccess, "\(revoked)")
            let answer = try until("the key is refused", seconds: 5) {
                let answer = try app.post(App.click("m"))
                return answer.status == 200 ? nil : answer
            }
            try StatusTests.expectRefusal(answer, 403)
        }

        @Test func keysAreListedButNeverShown() throws {
            let app = try Shared.app()
            let arguments = ["key", "list", "--app", app.name, "--format", "json"]
            let outcome = try Tapline.run(arguments + app.daemon.store)
            #expect(outcome.isSuccess && outcome.output.contains(app.name))
            #expect(!outcome.output.contains(app.key))
            let files = try Tapline.tool(
                ["sh", "-c", "grep -rl '\(app.key)' '\(app.daemon.directory)' || true"])
            #expect(files.isEmpty, "the key is on disk: \(files)")
        }
    }
}
