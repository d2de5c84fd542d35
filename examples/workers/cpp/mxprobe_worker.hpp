// Makes a C++ program a device for mxprobe. One header, C++17, no dependencies, for Unix and Windows: copy it.
//
//     #include "mxprobe_worker.hpp"
//
//     int main() {
//         mxprobe::device device("my unit");
//         device.add("gemm.m*n*k*.f32.f32.f32.f32", [](const mxprobe::tile &t) {
//             // t.m, t.n, t.k; t.a<float>() m×k, t.b<float>() k×n, t.c<float>() and t.d<float>() m×n, row-major
//         });
//         return mxprobe::serve({device});
//     }
//
//     $ mxprobe --device 'exec:./my_program'
//
// An operation is named FAMILY.mMnNkK.D.A.B.C, formats last; `*` leaves a size to the user (`--shape MxNxK`). Elements
// of fewer than 8 bits take one byte whose high bits are zero. An exception becomes the answer `failed`.
#ifndef MXPROBE_WORKER_HPP
#define MXPROBE_WORKER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#else
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the protocol's elements are little-endian"
#endif

namespace mxprobe {

/// Thrown for requests that cannot be answered: the answer `failed` with this kind of error (docs/protocol.md).
struct failure : std::runtime_error {
    std::string kind;
    explicit failure(const std::string &message, const char *of_kind = "unsupported")
        : std::runtime_error(message), kind(of_kind) {}
};

/// The operands of one multiply-add, and the memory for its result. All matrices are row-major.
class tile {
public:
    std::size_t m = 0, n = 0, k = 0;

    /// A, m×k.
    template <class T> const T *a() const { return static_cast<const T *>(operands[0]); }
    /// B, k×n.
    template <class T> const T *b() const { return static_cast<const T *>(operands[1]); }
    /// C, m×n.
    template <class T> const T *c() const { return static_cast<const T *>(operands[2]); }
    /// The scales of A, m×⌈k/block⌉, if the operation's id names block scales.
    template <class T> const T *scale_a() const { return static_cast<const T *>(operands[3]); }
    /// The scales of B, ⌈k/block⌉×n.
    template <class T> const T *scale_b() const { return static_cast<const T *>(operands[4]); }
    /// D, m×n, to be written.
    template <class T> T *d() const { return static_cast<T *>(result); }

    const void *operands[5] = {};
    void *result = nullptr;
};

using function = std::function<void(const tile &)>;

namespace detail {

/// The bytes of an element; 0 for an unknown format.
inline std::size_t bytes_of(const std::string &format) {
    static const std::map<std::string, std::size_t> bytes = {
        {"f64", 8},  {"f32", 4},  {"tf32", 4}, {"xf32", 4},     {"f16", 2},      {"bf16", 2}, {"e4m3", 1}, {"e5m2", 1},
        {"s32", 4},  {"u32", 4},  {"s16", 2},  {"e4m3fnuz", 1}, {"e5m2fnuz", 1}, {"e3m2", 1}, {"e2m3", 1}, {"e2m1", 1},
        {"s8", 1},   {"u8", 1},   {"s4", 1},   {"u4", 1},       {"ue8m0", 1},    {"ue4m3", 1},
    };
    const auto found = bytes.find(format);
    return found == bytes.end() ? 0 : found->second;
}

/// Parses an unsigned integer; `npos` if the text is something else or too large.
inline std::size_t number_of(const std::string &digits) {
    std::size_t value = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9' || value > (std::string::npos >> 4) / 10) return std::string::npos;
        value = 10 * value + static_cast<std::size_t>(digit - '0');
    }
    return digits.empty() ? std::string::npos : value;
}

inline std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> words(1);
    for (const char letter : text) {
        if (letter == '.') words.emplace_back();
        else words.back() += letter;
    }
    return words;
}

/// An operation's id: its words, and m, n and k, where 0 means free.
struct id {
    std::vector<std::string> words;
    std::size_t sizes[3] = {};
    std::size_t block = 0;
    std::string scale;

    explicit id(const std::string &text) : words(split(text)) {
        const std::string wrong = "`" + text + "` is not an operation id: the form is FAMILY.mMnNkK.D.A.B.C";
        if (words.size() < 6) throw failure(wrong, "invalid");
        const std::string &shape = words[1];
        const std::size_t n = shape.find('n'), k = shape.find('k');
        if (shape.empty() || shape[0] != 'm' || n == std::string::npos || k == std::string::npos || k < n)
            throw failure(wrong, "invalid");
        const std::string digits[3] = {shape.substr(1, n - 1), shape.substr(n + 1, k - n - 1), shape.substr(k + 1)};
        for (int at = 0; at < 3; ++at) {
            if (digits[at] == "*") continue;
            sizes[at] = number_of(digits[at]);
            if (sizes[at] == 0 || sizes[at] > 65536) throw failure(wrong, "invalid");
        }
        for (std::size_t at = 2; at < words.size(); ++at) {
            if (at < 6 && bytes_of(words[at]) == 0)
                throw failure("`" + text + "`: unknown format `" + words[at] + "`", "invalid");
            if (at >= 6 && words[at].compare(0, 5, "block") == 0 && at + 1 < words.size()) {
                block = number_of(words[at].substr(5));
                scale = words[at + 1];
                if (block == 0 || block == std::string::npos || bytes_of(scale) == 0) throw failure(wrong, "invalid");
            }
        }
    }

    bool has_free_sizes() const { return sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0; }

    /// Whether a fixed id is this one, possibly with its free sizes fixed.
    bool matches(const id &fixed) const {
        if (words.size() != fixed.words.size() || fixed.has_free_sizes()) return false;
        for (std::size_t at = 0; at < words.size(); ++at)
            if (at != 1 && words[at] != fixed.words[at]) return false;
        for (int at = 0; at < 3; ++at)
            if (sizes[at] != 0 && sizes[at] != fixed.sizes[at]) return false;
        return true;
    }
};

/// A JSON object on one line. Its strings, integers and lists of these are kept; other members are discarded.
class request {
public:
    /// Throws `failure` if the line is not a valid request.
    explicit request(const std::string &line) : text(line) {
        take('{');
        if (next() != '}') {
            do {
                const std::string key = string();
                take(':');
                value(members[key]);
            } while (next() == ',' && ++at);
        }
        take('}');
        if (next() != '\0' || at != text.size()) wrong();
    }

    /// A string; empty without a member of that name.
    std::string word(const char *key) const {
        const auto found = members.find(key);
        return found == members.end() ? std::string() : found->second.word;
    }

    /// An integer as a list of one, or a list of integers.
    std::vector<std::size_t> numbers(const char *key) const {
        const auto found = members.find(key);
        if (found == members.end()) return {};
        const auto &list = found->second.numbers;
        if (std::count(list.begin(), list.end(), std::string::npos) > 0) wrong();
        return list;
    }

private:
    struct member {
        std::string word;
        std::vector<std::size_t> numbers;
    };
    const std::string &text;
    std::size_t at = 0;
    int depth = 0;
    std::map<std::string, member> members;

    [[noreturn]] void wrong() const {
        throw failure("`" + text.substr(0, 80) + "` is not a request of mxprobe-device/1", "invalid");
    }

    /// The next character that is not a space; 0 at the end.
    char next() {
        while (at < text.size() && std::strchr(" \t\r", text[at])) ++at;
        return at < text.size() ? text[at] : '\0';
    }

    void take(char letter) {
        if (next() != letter) wrong();
        ++at;
    }

    std::string string() {
        std::string result;
        take('"');
        for (; at < text.size() && text[at] != '"'; ++at) {
            if (static_cast<unsigned char>(text[at]) < 0x20) wrong();
            if (text[at] != '\\') {
                result += text[at];
                continue;
            }
            const char *const from = "\"\\/bfnrt", *const to = "\"\\/\b\f\n\r\t";
            const char escape = ++at < text.size() ? text[at] : '\0';
            const char *const found = escape == '\0' ? nullptr : std::strchr(from, escape);
            // No name in the protocol needs a character that JSON writes as \u.
            if (!found && (escape != 'u' || text.find_first_not_of("0123456789abcdefABCDEF", at + 1) < at + 5)) wrong();
            result += found ? to[found - from] : '?';
            at += found ? 0 : 4;
        }
        take('"');
        return result;
    }

    void value(member &kept) {
        const char letter = next();
        if (letter == '"') {
            kept.word = string();
        } else if (letter == '[' || letter == '{') {
            if (++depth > 64) wrong();
            const char close = letter == '[' ? ']' : '}';
            ++at;
            if (next() != close) {
                do {
                    member inner;
                    if (letter == '{') string(), take(':');
                    value(inner);
                    kept.numbers.push_back(inner.numbers.size() == 1 ? inner.numbers[0] : std::string::npos);
                } while (next() == ',' && ++at);
            }
            take(close);
            --depth;
        } else {
            const std::size_t start = at;
            while (at < text.size() && !std::strchr(",]} \t\r", text[at])) ++at;
            const std::string token = text.substr(start, at - start);
            const bool is_name = token == "true" || token == "false" || token == "null";
            if (token.empty() || (!is_name && token.find_first_not_of("+-.0123456789Ee") != std::string::npos)) wrong();
            kept.numbers = {number_of(token)};
        }
    }
};

/// Quotes a text as JSON: invalid UTF-8 becomes U+FFFD; line breaks and other control characters become spaces.
inline std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (std::size_t at = 0, length = 1; at < text.size(); at += length) {
        const auto byte = [&](std::size_t next) { return static_cast<unsigned char>(text[at + next]); };
        const unsigned char first = byte(0);
        // Overlong forms, surrogates and values above U+10FFFF are detected by the second byte.
        const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        bool is_valid = (first < 0x80 || (first >= 0xc2 && first < 0xf5)) && at + length <= text.size();
        for (std::size_t next = 1; is_valid && next < length; ++next)
            is_valid = byte(next) >= (next == 1 ? low : 0x80) && byte(next) <= (next == 1 ? high : 0xbf);
        if (!is_valid) length = 1;
        if (first == '"' || first == '\\') result += '\\';
        if (is_valid && first >= 0x20) result.append(text, at, length);
        else result += is_valid ? " " : "\\ufffd";
    }
    return result + '"';
}

/// The protocol's standard input and output. Once constructed, output that a library prints goes to standard error, and
/// its input is empty, so that neither can mix with the protocol's bytes.
class streams {
public:
    streams() {
        std::fflush(stdout);
#ifdef _WIN32
        in = _dup(0), out = _dup(1);
        const int nothing = _open("NUL", _O_RDONLY);
        _dup2(nothing, 0), _dup2(2, 1), _close(nothing);
        _setmode(in, _O_BINARY), _setmode(out, _O_BINARY);
#else
        in = dup(0), out = dup(1);
        const int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, 0), dup2(2, 1), close(nothing);
        // A closed reader is noticed when an answer is written.
        std::signal(SIGPIPE, SIG_IGN);
#endif
    }

    /// Reads the next line without its newline; `false` at the end of the input.
    bool line(std::string &text) {
        text.clear();
        while (at < buffer.size() || fill()) {
            const char letter = buffer[at++];
            if (letter == '\n') return true;
            text += letter;
        }
        return false;
    }

    bool exactly(std::vector<unsigned char> &part) {
        for (std::size_t done = 0; done < part.size();) {
            if (at == buffer.size() && !fill()) return false;
            const std::size_t count = std::min(part.size() - done, buffer.size() - at);
            std::memcpy(part.data() + done, buffer.data() + at, count);
            at += count, done += count;
        }
        return true;
    }

    bool write(const void *data, std::size_t size) {
        for (const char *from = static_cast<const char *>(data); size > 0;) {
            const std::size_t most = std::min<std::size_t>(size, 1 << 20);
#ifdef _WIN32
            const auto count = _write(out, from, static_cast<unsigned>(most));
#else
            const auto count = ::write(out, from, most);
            if (count < 0 && errno == EINTR) continue;
#endif
            if (count <= 0) return false;
            from += count, size -= static_cast<std::size_t>(count);
        }
        return true;
    }

private:
    int in, out;
    std::string buffer;
    std::size_t at = 0;

    bool fill() {
        buffer.resize(1 << 16);
        at = 0;
#ifdef _WIN32
        const auto count = _read(in, &buffer[0], static_cast<unsigned>(buffer.size()));
#else
        auto count = ::read(in, &buffer[0], buffer.size());
        while (count < 0 && errno == EINTR) count = ::read(in, &buffer[0], buffer.size());
#endif
        buffer.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        return count > 0;
    }
};

using bytes = std::vector<unsigned char>;

} // namespace detail

/// A device: a display name and operations.
class device {
public:
    /// A name for programs: identical for all devices of the same kind.
    std::string fingerprint;
    /// `hardware`, `software` or `model`.
    std::string kind = "software";
    /// The version of the underlying library or driver.
    std::string version;

    explicit device(std::string for_people, std::string selector = "0")
        : name(std::move(for_people)), selector_(std::move(selector)) {}

    /// Adds an operation. `compute` writes D of one tile. `scope`: what computes a tile together, such as `thread`;
    /// `instruction`: the mnemonic of the underlying instruction.
    void add(const std::string &id, function compute, const std::string &scope = "",
             const std::string &instruction = "") {
        std::string described = "{\"id\":" + detail::quoted(id);
        if (!scope.empty()) described += ",\"scope\":" + detail::quoted(scope);
        if (!instruction.empty()) described += ",\"instruction\":" + detail::quoted(instruction);
        operations.push_back({detail::id(id), std::move(compute), described + "}"});
    }

    const std::string &selector() const { return selector_; }

    /// The device as the protocol describes it.
    std::string described() const {
        std::string text = "{\"selector\":" + detail::quoted(selector_) + ",\"name\":" + detail::quoted(name) +
                           ",\"kind\":" + detail::quoted(kind);
        if (!fingerprint.empty()) text += ",\"fingerprint\":" + detail::quoted(fingerprint);
        if (!version.empty())
            text += ",\"driver\":{\"name\":" + detail::quoted(name) + ",\"version\":" + detail::quoted(version) +
                    ",\"api_version\":\"\"}";
        text += ",\"operations\":[";
        for (const auto &one : operations) text += (&one == &operations[0] ? "" : ",") + one.described;
        return text + "]}";
    }

    /// Computes D of a batch of tiles.
    detail::bytes execute(const std::string &text, std::size_t tiles, const std::vector<detail::bytes> &parts) const {
        const detail::id fixed(text);
        for (const auto &one : operations)
            if (one.id.matches(fixed)) return run(one.compute, fixed, tiles, parts);
        throw failure("the device `" + selector_ + "` has no operation " + text, "invalid");
    }

private:
    struct operation {
        detail::id id;
        function compute;
        std::string described;
    };
    std::string name, selector_;
    std::vector<operation> operations;

    static detail::bytes run(const function &compute, const detail::id &id, std::size_t tiles,
                             const std::vector<detail::bytes> &parts) {
        tile one;
        one.m = id.sizes[0], one.n = id.sizes[1], one.k = id.sizes[2];
        const auto bytes = [&](int word) { return detail::bytes_of(id.words[static_cast<std::size_t>(word)]); };
        std::vector<std::size_t> sizes = {one.m * one.k * bytes(3), one.k * one.n * bytes(4), one.m * one.n * bytes(5)};
        if (id.block != 0) {
            const std::size_t blocks = (one.k + id.block - 1) / id.block;
            sizes.push_back(one.m * blocks * detail::bytes_of(id.scale));
            sizes.push_back(blocks * one.n * detail::bytes_of(id.scale));
        }
        if (parts.size() != sizes.size())
            throw failure(std::to_string(parts.size()) + " operands were sent for an operation that takes " +
                          std::to_string(sizes.size()), "invalid");
        for (std::size_t at = 0; at < sizes.size(); ++at)
            if (tiles != parts[at].size() / sizes[at] || parts[at].size() % sizes[at] != 0)
                throw failure(std::to_string(parts[at].size()) + " bytes were sent for " + std::to_string(tiles) +
                              " tiles of " + std::to_string(sizes[at]) + " bytes", "invalid");
        const std::size_t result = one.m * one.n * bytes(2);
        // An element that is not written reads as NaN, not as zero.
        detail::bytes d(tiles * result, 0xff);
        for (std::size_t at = 0; at < tiles; ++at) {
            for (std::size_t part = 0; part < parts.size(); ++part)
                one.operands[part] = parts[part].data() + at * sizes[part];
            one.result = d.data() + at * result;
            compute(one);
        }
        return d;
    }
};

/// Answers mxprobe's requests about these devices until standard input closes. Returns the program's exit code.
inline int serve(const std::vector<device> &devices) {
    detail::streams streams;
    const auto failed = [](const char *message, const std::string &kind) {
        return "{\"answer\":\"failed\",\"kind\":" + detail::quoted(kind) + ",\"message\":" + detail::quoted(message);
    };
    std::string line;
    while (streams.line(line)) {
        std::string answer;
        detail::bytes part;
        try {
            if (line.empty()) continue;
            const detail::request request(line);
            std::vector<detail::bytes> parts;
            for (const std::size_t size : request.numbers("bytes")) {
                // Without memory for an operand, the rest of the stream cannot be understood: end the process.
                parts.push_back([size]() noexcept { return detail::bytes(size); }());
                if (!streams.exactly(parts.back())) return 0;
            }
            const std::string ask = request.word("ask"), selector = request.word("device");
            const device *meant = nullptr;
            for (const device &one : devices)
                if (one.selector() == selector) meant = &one;
            if (ask == "discover") {
                if (request.word("protocol") != "mxprobe-device/1")
                    throw failure("the protocol `" + request.word("protocol") + "` is not mxprobe-device/1", "invalid");
                answer = "{\"answer\":\"found\",\"protocol\":\"mxprobe-device/1\",\"devices\":[";
                for (const device &one : devices) answer += (&one == &devices[0] ? "" : ",") + one.described();
                answer += "]";
            } else if (!meant) {
                throw failure("unknown device `" + selector + "`", "invalid");
            } else if (ask == "open") {
                answer = "{\"answer\":\"opened\",\"device\":" + meant->described();
            } else if (ask == "execute") {
                const auto tiles = request.numbers("tiles");
                if (tiles.size() != 1) throw failure("`execute` needs a number of tiles", "invalid");
                part = meant->execute(request.word("operation"), tiles[0], parts);
                answer = "{\"answer\":\"done\",\"bytes\":[" + std::to_string(part.size()) + "]";
            } else {
                throw failure("this program does not answer `" + ask + "`");
            }
        } catch (const failure &error) {
            answer = failed(error.what(), error.kind);
        } catch (const std::bad_alloc &) {
            answer = failed("out of memory", "out_of_memory");
        } catch (const std::exception &error) {
            answer = failed(error.what(), "driver");
        } catch (...) {
            answer = failed("an exception without a message", "driver");
        }
        answer += "}\n";
        if (!streams.write(answer.data(), answer.size()) || !streams.write(part.data(), part.size())) return 1;
    }
    return 0;
}

} // namespace mxprobe

#endif
