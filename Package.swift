// swift-tools-version: 6.2
// Targets in the order of the layers: an arrow points down only.
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
    .enableExperimentalFeature("Lifetimes"),
]

// Where tests make a debug build fail; a release build has none of it.
let failpoints: [SwiftSetting] = [.define("FAILPOINTS", .when(configuration: .debug))]

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: strict)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: strict)
}

let package = Package(
    name: "tapline",
    targets: [
        .executableTarget(
            name: "tapline",
            dependencies: [
                "Daemon", "Ingest", "Load", "Report", "HTTPServer", "Postgres", "Spool", "Event",
                "Platform", "Options", "Client", "Sample", "Demo", "Explain", "Top", "Bench",
                "Import",
            ],
            swiftSettings: strict),
        library(
            "Ingest",
            ["HTTPServer", "Gzip", "JSONLines", "Spool", "Metrics", "Event", "Platform"]),
        library(
            "Load",
            [
                "Postgres", "Spool", "Metrics", "Event", "JSONLines", "Platform", "CPlatform",
                "Schema",
            ]),
        library(
            "Daemon",
            [
                "Ingest", "Load", "Web", "HTTPServer", "Postgres", "Spool", "Metrics", "Event",
                "JSONLines", "Platform",
            ]),
        .target(
            name: "Web",
            dependencies: [
                "Ingest", "Load", "Report", "HTTPServer", "Postgres", "Metrics", "Event",
                "Platform",
            ],
            resources: [.embedInCode("page.html")], swiftSettings: strict),
        library(
            "Explain",
            [
                "Ingest", "Load", "Postgres", "Spool", "Event", "JSONLines", "Platform", "Schema",
            ]),
        library(
            "Bench",
            [
                "Daemon", "Load", "Report", "Client", "Sample", "Postgres", "Spool", "Event",
                "JSONLines", "Platform", "Top",
            ]),
        library("Report", ["Postgres", "Event", "Platform", "Schema"]),
        library("Demo", ["Client", "Sample", "Options"]),
        library("Import", ["Client", "Ingest", "JSONLines", "Event", "Platform"]),
        library("Client", ["Platform", "CCurlShim", "CZlib"]),
        library("Top", ["Platform"]),
        library("Sample"),
        library("Options"),
        library("HTTPServer", ["Platform", "CMicrohttpd", "CHTTPShim"]),
        library("Postgres", ["Platform", "CPostgres", "CSpawn"]),
        library("Gzip", ["CIsal", "CZlib"]),
        library("Spool", ["Platform", "CPlatform"]),
        library("Metrics", ["Platform"]),
        library("Event", ["JSONLines", "Platform", "CCrypto", "CHash", "CScan"]),
        library("JSONLines", ["CScan"]),
        .target(
            name: "Platform", dependencies: ["CPlatform", "CIsal"],
            swiftSettings: strict + failpoints),
        .target(
            name: "Schema", path: "sql",
            resources: [
                .embedInCode("migrations"), .embedInCode("cells"), .embedInCode("report"),
                .embedInCode("privacy"),
            ],
            swiftSettings: strict),

        .target(name: "CPlatform"),
        .target(name: "CScan"),
        .target(name: "CHash"),
        .target(name: "CSpawn"),
        .target(name: "CHTTPShim", dependencies: ["CMicrohttpd"]),
        // Opens libcurl where it is first needed, so nothing is linked.
        .target(name: "CCurlShim"),
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib"),
        .systemLibrary(name: "CIsal", pkgConfig: "libisal"),
        .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd"),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto"),
        .target(name: "CSimdjson", linkerSettings: [.linkedLibrary("simdjson")]),

        tests("PlatformTests", ["Platform"]),
        tests("EventTests", ["Event", "JSONLines"]),
        tests("JSONLinesTests", ["JSONLines", "CSimdjson"]),
        .target(
            name: "GzipOracle", dependencies: ["Gzip", "CZlib"], path: "Tests/GzipOracle",
            swiftSettings: strict),
        tests("GzipTests", ["Gzip", "GzipOracle", "CZlib"]),
        tests("SpoolTests", ["Spool", "Platform"]),
        tests("MetricsTests", ["Metrics", "Platform"]),
        tests("OptionsTests", ["Options"]),
        tests("ClientTests", ["Client"]),
        tests("ImportTests", ["Import", "Client"]),
        tests("TopTests", ["Top"]),
        tests("SampleTests", ["Sample"]),
        tests("DemoTests", ["Demo", "Options", "Sample"]),
        .target(
            name: "HTTPTestClient", path: "Tests/HTTPTestClient", swiftSettings: strict),
        tests("HTTPServerTests", ["HTTPServer", "HTTPTestClient", "Platform"]),
        .target(
            name: "PostgresTesting",
            dependencies: ["Postgres", "Platform", "postgres-watchdog-for-tests"],
            path: "Tests/PostgresTesting", swiftSettings: strict),
        .executableTarget(
            name: "postgres-watchdog-for-tests", dependencies: ["Postgres"],
            path: "Tests/PostgresWatchdog", swiftSettings: strict),
        tests("PostgresTests", ["Postgres", "PostgresTesting", "Platform", "CSpawn"]),
        .target(name: "CAllocationCount", path: "Tests/CAllocationCount"),
        tests(
            "IngestTests",
            [
                "Ingest", "Event", "JSONLines", "Gzip", "Spool", "Platform", "HTTPServer",
                "HTTPTestClient", "Metrics", "CAllocationCount",
            ]),
        tests("BenchTests", ["Bench", "Event", "JSONLines", "Platform"]),
        tests("WebTests", ["Web", "Ingest", "Report", "HTTPServer", "Platform"]),
        tests(
            "LoadTests",
            [
                "Load", "Ingest", "Report", "Explain", "Postgres", "PostgresTesting",
                "PythonTesting", "Spool", "Event", "Metrics", "Platform", "Schema",
            ]),
        // Not part of `tapline`: `swift run -c release ingest-bench`.
        .executableTarget(
            name: "ingest-bench",
            dependencies: [
                "Ingest", "Event", "JSONLines", "Gzip", "Spool", "Platform", "HTTPServer",
                "HTTPTestClient", "Metrics",
            ],
            path: "Benchmarks/Ingest", swiftSettings: strict),
        .target(
            name: "PythonTesting", path: "Tests/PythonTesting", swiftSettings: strict),
        .testTarget(
            name: "DashboardTests", dependencies: ["PythonTesting"],
            exclude: [
                "browser.py", "harness.py", "test_benchmarks.py", "test_dashboards.py",
                "test_deploy.py", "test_documents.py", "test_live.py", "test_report.py",
                "test_openapi.py",
                "test_rules.py",
            ], swiftSettings: strict),
        tests(
            "ReportTests",
            [
                "Report", "Postgres", "PostgresTesting", "PythonTesting", "Event", "Platform",
                "Schema",
            ]),
        .target(
            name: "FuzzProperties",
            dependencies: [
                "JSONLines", "Gzip", "GzipOracle", "Event", "Ingest", "Spool", "Platform",
                "HTTPServer", "Web", "CSimdjson",
            ],
            path: "Tests/Fuzz/Properties", swiftSettings: strict),
        // Of use only as `make fuzz` builds it.
        .executableTarget(
            name: "fuzz", dependencies: ["FuzzProperties"], path: "Tests/Fuzz/Runner",
            swiftSettings: strict),
        tests(
            "FuzzTests",
            ["FuzzProperties", "JSONLines", "Postgres", "PostgresTesting", "Platform"]),
        tests("SystemTests", ["CPostgres", "CZlib"]),
    ],
    cxxLanguageStandard: .cxx17
)
