internal import CPlatform
import Glibc

/// A failed system call, with what was being done and to what.
///
/// Public for the sake of ``Failpoint``, which names it.
public struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The errno value.
    package let code: Int32
    /// What failed, to follow "could not": `append to spool segment`.
    package let action: String
    /// The file or directory that it was done to; empty when there is none.
    package let path: String

    /// Describes a failure with a given errno value.
    package init(code: Int32, action: String, path: String = "") {
        self.code = code
        self.action = action
        self.path = path
    }

    /// Describes the failure of the call just made, from `errno`.
    package static func last(_ action: String, _ path: String = "") -> SystemError {
        SystemError(code: errno, action: action, path: path)
    }

    /// The disk, quota or file size limit is reached: it may pass when space is freed.
    package var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
    /// The file does not exist.
    package var isNotFound: Bool { code == ENOENT }

    /// `could not append to spool segment "000042.seg": no space left on device`.
    public var description: String {
        let object = path.isEmpty ? "" : " \"\(path)\""
        return "could not \(action)\(object): \(Self.reason(code))"
    }

    /// The text of an errno value in lower case, with abbreviations left alone.
    package static func reason(_ code: Int32) -> String {
        // SAFETY: the shim returns a constant string, never null.
        let text = unsafe String(cString: tapline_strerror(code))
        let second = text.dropFirst().first
        guard let first = text.first, second?.isUppercase != true else { return text }
        return first.lowercased() + text.dropFirst()
    }
}
