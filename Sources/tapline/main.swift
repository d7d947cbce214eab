exitTapline(Array(CommandLine.arguments.dropFirst()))
