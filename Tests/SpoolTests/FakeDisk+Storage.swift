import Foundation
import Glibc
import Platform
import Spool

/// The operations of a spool's storage: done, and noted until they are synced.
extension FakeDisk {
    private func name(_ path: String) -> String { String(path.dropFirst(fixture.path.count + 1)) }

    private func fail(_ action: String, _ path: String, _ code: Int32 = EIO) -> SystemError {
        SystemError(code: code, action: action, path: path)
    }

    /// Counts a step and waits while it is held; true when it has to fail.
    private func step(_ action: String, _ path: String) throws(SystemError) -> Bool {
        let isHeld = state.withLock { state in
            state.isHeld = state.isHolding
            return state.isHeld
        }
        if isHeld {
            state.broadcast()
            _ = state.wait(until: Clock.deadline(inMilliseconds: 60_000)) {
                $0.isHolding ? nil : true
            }
        }
        return try state.withLock { state throws(SystemError) in
            if [state.fault.cut, state.fault.kill].contains(state.steps) { state.isOff = true }
            defer { state.steps += 1 }
            if state.isOff { throw fail(action, path) }
            return state.fault.failing.contains(state.steps)
        }
    }

    private func create(_ path: String, _ mode: File.Mode) throws(SystemError) -> File {
        if try step("create", path) { throw fail("create", path) }
        if state.withLock({ $0.fault.bytesFree }) == 0 { throw fail("create", path, ENOSPC) }
        let file = try File(path, mode, isDirect: isDirect)
        let name = self.name(path)
        state.withLock { state in
            if let node = state.names[name] {
                state.nodes[node]!.pending.append(.truncate(0))
                return
            }
            state.lastNode += 1
            state.nodes[state.lastNode] = Node()
            state.names[name] = state.lastNode
            state.entries.append(.link(name, state.lastNode))
        }
        return file
    }

    private func write(
        _ file: borrowing File, _ bytes: Span<UInt8>, _ offset: Int
    ) throws(SystemError) -> Int {
        let path = file.path
        let fails = try step("write", path)
        var count = fails ? bytes.count / 2 : bytes.count
        try state.withLock { state throws(SystemError) in
            count = min(count, state.fault.writeBytesMax ?? count)
            // Past the page cache whole blocks are written.
            if file.isDirect, !fails { count = min(bytes.count, BlockBuffer.roundedUp(count)) }
            guard let free = state.fault.bytesFree else { return }
            if free == 0 { throw fail("write", path, ENOSPC) }
            count = min(count, free)
            state.fault.bytesFree = free - count
        }
        let part = bytes.extracting(0..<count)
        try file.write(part, at: offset)
        // SAFETY: the bytes are copied while the buffer is valid.
        let copy = unsafe part.withUnsafeBufferPointer { unsafe Array($0) }
        state.withLock { state in
            guard let node = state.names[name(path)] else { return }
            state.nodes[node]!.pending.append(.write(offset: offset, copy))
        }
        if fails { throw fail("write", path) }
        return count
    }

    private func sync(_ file: borrowing File) throws(SystemError) {
        let path = file.path
        let fails = try step("sync", path)
        state.withLock { state in
            guard let number = state.names[name(path)] else { return }
            if fails {
                if case .truncate? = state.nodes[number]!.pending.last {
                    state.hasCleanupFailed = true
                }
                state.hasSyncFailed = true
                Self.settle(&state.nodes[number]!, order, &state.random)
                state.failedSyncs.insert(number)
                return
            }
            let pending = state.nodes[number]!.pending
            for change in pending { Self.apply(change, to: &state.nodes[number]!.durable) }
            state.nodes[number]!.pending = []
        }
        if fails { throw fail("sync", path) }
    }

    private func truncate(_ file: borrowing File, _ count: Int) throws(SystemError) {
        let path = file.path
        if try step("truncate", path) {
            state.withLock { $0.hasCleanupFailed = true }
            throw fail("truncate", path)
        }
        try file.truncate(to: count)
        state.withLock { state in
            guard let node = state.names[name(path)] else { return }
            state.nodes[node]!.pending.append(.truncate(count))
        }
    }

    private func remove(_ path: String) throws(SystemError) {
        if try step("remove", path) {
            state.withLock { $0.hasCleanupFailed = true }
            throw fail("remove", path)
        }
        try File.remove(path)
        state.withLock { state in
            state.names[name(path)] = nil
            state.entries.append(.unlink(name(path)))
        }
    }

    private func rename(_ path: String, _ target: String) throws(SystemError) {
        if try step("rename", path) { throw fail("rename", path) }
        guard unsafe Glibc.rename(path, target) == 0 else { throw .last("rename", path) }
        state.withLock { state in
            guard let node = state.names.removeValue(forKey: name(path)) else { return }
            state.names[name(target)] = node
            state.entries.append(.rename(name(path), name(target), node))
        }
    }

    private func syncDirectory(_ path: String) throws(SystemError) {
        if try step("sync directory", path) {
            state.withLock { state in
                if case .unlink? = state.entries.last { state.hasCleanupFailed = true }
            }
            throw fail("sync directory", path)
        }
        let isInside: (String) -> Bool = { [fixture] name in
            Directory.parent(of: fixture.path + "/" + name) == path
        }
        state.withLock { state in
            var left: [Entry] = []
            for entry in state.entries {
                let isSettled =
                    switch entry {
                    case .link(let name, _), .unlink(let name): isInside(name)
                    case .rename(let from, let to, _): isInside(from) || isInside(to)
                    }
                if isSettled {
                    Self.apply(entry, to: &state.durableNames)
                } else {
                    left.append(entry)
                }
            }
            state.entries = left
        }
    }

    private func replace(_ path: String, _ bytes: Span<UInt8>) throws(SystemError) {
        let temporary = path + ".new"
        let file = try create(temporary, .replace)
        var done = 0
        while done < bytes.count {
            done += try write(file, bytes.extracting(droppingFirst: done), done)
        }
        try sync(file)
        try rename(temporary, path)
        try syncDirectory(Directory.parent(of: path))
    }

    private func move(_ path: String, _ target: String) throws(SystemError) {
        try rename(path, target)
        try syncDirectory(Directory.parent(of: target))
        try syncDirectory(Directory.parent(of: path))
    }

    /// The operations, for a spool.
    var storage: SpoolStorage {
        var storage = SpoolStorage.system
        storage.create = { path throws(SystemError) in try self.create(path, .createNew) }
        storage.write = { file, bytes, offset throws(SystemError) in
            try self.write(file, bytes, offset)
        }
        storage.sync = { file throws(SystemError) in try self.sync(file) }
        storage.truncate = { file, bytes throws(SystemError) in try self.truncate(file, bytes) }
        storage.replace = { path, bytes throws(SystemError) in try self.replace(path, bytes) }
        storage.move = { path, target throws(SystemError) in try self.move(path, target) }
        storage.remove = { path throws(SystemError) in try self.remove(path) }
        storage.syncDirectory = { path throws(SystemError) in try self.syncDirectory(path) }
        return storage
    }
}
