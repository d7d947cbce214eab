// libFuzzer over one property; `make fuzz` builds it with -sanitize=fuzzer.
import Foundation
import FuzzProperties

let name = ProcessInfo.processInfo.environment["FUZZ_PROPERTY"] ?? ""
guard let property = Property(rawValue: name) else {
    let names = Property.allCases.map(\.rawValue).joined(separator: ", ")
    FileHandle.standardError.write(
        Data("fuzz: FUZZ_PROPERTY is \"\(name)\", expected one of \(names)\n".utf8))
    exit(2)
}

#if LIBFUZZER
    @_silgen_name("LLVMFuzzerRunDriver")
    func runFuzzer(
        _ count: UnsafeMutablePointer<CInt>,
        _ arguments: UnsafeMutablePointer<
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
        >, _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
    ) -> CInt

    /// The property under test, where a C function finds it.
    enum Subject { nonisolated(unsafe) static var property = Property.json }
    unsafe Subject.property = property
    // Into the first directory, as libFuzzer does with what it finds.
    if let corpus = CommandLine.arguments.dropFirst().first(where: { !$0.hasPrefix("-") }) {
        for (index, seed) in property.madeSeeds.enumerated() {
            try? Data(seed).write(to: URL(fileURLWithPath: "\(corpus)/made-\(index)"))
        }
    }
    var count = CommandLine.argc
    var arguments = unsafe CommandLine.unsafeArgv
    let code = unsafe runFuzzer(&count, &arguments) { bytes, count in
        // SAFETY: libFuzzer gives `count` bytes that live during the call.
        let input = unsafe [UInt8](UnsafeBufferPointer(start: bytes, count: count))
        if let violation = unsafe Subject.property.violation(input) { fatalError(violation) }
        return 0
    }
    exit(code)
#else
    FileHandle.standardError.write(Data("fuzz: not built for fuzzing, use \"make fuzz\"\n".utf8))
    exit(2)
#endif
