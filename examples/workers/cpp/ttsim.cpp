// The matrix unit of Tenstorrent's Wormhole and Blackhole, as their simulator computes it. TTSIM is the absolute path
// of a checkout of https://github.com/tenstorrent/ttsim; release_bh instead of release_wh simulates a Blackhole:
//
//     (cd $TTSIM && ./make.py src/_out/release_wh/libttsim.so)
//     c++ -std=c++17 -O2 -o ttsim examples/workers/cpp/ttsim.cpp $TTSIM/src/_out/release_wh/libttsim.so
//     mxprobe run --device 'exec:./ttsim'
//
// The program is a driver for that chip. Over PCIe it writes operands into the memory of one Tensix tile, has the
// tile's first RISC-V core issue the instructions that load registers and multiply, and reads the result from the
// registers. Instructions and registers: https://github.com/tenstorrent/tt-isa-documentation
#include "mxprobe_worker.hpp"

extern "C" {
void libttsim_init();
void libttsim_clock(std::uint32_t clocks);
std::uint32_t libttsim_pci_config_rd32(std::uint32_t bus_device_function, std::uint32_t offset);
void libttsim_pci_mem_rd_bytes(std::uint64_t address, void *to, std::uint32_t size);
void libttsim_pci_mem_wr_bytes(std::uint64_t address, const void *from, std::uint32_t size);
}

using u32 = std::uint32_t;

// Addresses in the tile: memory starts at 0, followed by registers. The host accesses both through windows of BAR 0.
constexpr u32 MAILBOX = 0x1000, A = 0x4000, B = 0x5000, C = 0x6000;
constexpr u32 DEBUG = 0xffb12000, INSTRUCTIONS = 0xffe50000, CONFIGURATION = 0xffef0000;

// The RISC-V core's program. It waits until the mailbox holds a count, performs that many stores, whose addresses and
// values follow the count, and clears it.
constexpr u32 FIRMWARE[] = {
    0x000012b7,             // lui  x5, 1
    0x0002a303, 0xfe030ee3, // lw   x6, 0(x5); beq x6, x0, -4
    0x01028393,             // addi x7, x5, 16
    0x0003a403, 0x0043a483, // lw   x8, 0(x7); lw x9, 4(x7)
    0x00942023, 0x00838393, // sw   x9, 0(x8); addi x7, x7, 8
    0xfff30313, 0xfe0316e3, // addi x6, x6, -1; bne x6, x0, -20
    0x0002a023, 0xfd9ff06f, // sw   x0, 0(x5); jal x0, -40
};

class chip {
public:
    bool is_blackhole;

    chip() {
        libttsim_init();
        is_blackhole = libttsim_pci_config_rd32(0, 0) >> 16 == 0xb140;
        bar = libttsim_pci_config_rd32(0, 0x10) & ~15u;
        bar |= static_cast<std::uint64_t>(libttsim_pci_config_rd32(0, 0x14)) << 32;
        open_window(0, 0);
        open_window(1, DEBUG);
        write(0, FIRMWARE, sizeof FIRMWARE);
        put(MAILBOX, 0);
        put(DEBUG + 0x1b0, 0x47000); // takes the first core out of reset
        put(DEBUG + 0x60, 1);        // makes registers readable
        // Address modes: after an instruction, 0 returns to the first fidelity phase and 1 advances to the next.
        set_thread(is_blackhole ? 28 : 23, 1 << 15);
        set_thread(is_blackhole ? 29 : 24, 1 << 13);
        run();
    }

    void write(u32 to, const void *from, std::size_t size) {
        libttsim_pci_mem_wr_bytes(seen(to), from, static_cast<u32>(size));
    }
    void put(u32 to, u32 value) { write(to, &value, 4); }
    u32 get(u32 from) {
        u32 value;
        libttsim_pci_mem_rd_bytes(seen(from), &value, 4);
        return value;
    }

    void store(u32 to, u32 value) { stores.insert(stores.end(), {to, value}); }
    void configure(u32 index, u32 value) { store(CONFIGURATION + 4 * index, value); }
    void issue(u32 opcode, u32 operands) { store(INSTRUCTIONS, opcode << 24 | operands); }
    void set_thread(u32 index, u32 value) { issue(0xb2, index << 16 | value); } // SETC16

    // Makes the core perform the stores so far. The simulator completes an instruction before the core's next store, so
    // that nothing here waits for the unpackers, as a program for silicon must.
    void run() {
        write(MAILBOX + 16, stores.data(), 4 * stores.size());
        put(MAILBOX, static_cast<u32>(stores.size() / 2));
        stores.clear();
        while (get(MAILBOX) != 0) libttsim_clock(64);
    }

    // Unpacks `count` elements, at most 256, from the tile's memory: unpacker 0 into SrcA or Dst, unpacker 1 into SrcB.
    void unpack(u32 unpacker, u32 from, u32 count, u32 in, u32 out, bool to_dst = false) {
        const u32 base = unpacker == 0 ? (is_blackhole ? 64 : 52) : (is_blackhole ? 112 : 92);
        configure(base, in | 1 << 4 | count << 16);
        configure(base + 1, 1 | 1 << 16);
        configure(base + 8, out | 2 << 4);
        configure(base + 9, 1 | (to_dst ? 1 << 4 : 0));
        configure(base + 12, from / 16 - 1);
        if (unpacker == 0) {
            configure(base + 20, 64);
            configure(base + 22, count);
            set_thread(is_blackhole ? 5 : 3, to_dst ? 0 : 1 << 2);
        }
        issue(0x5e, (1 + unpacker) << 21 | (count - 1) << 10);            // SETADCXX
        issue(0x42, unpacker << 23 | 1 << 7 | (to_dst ? 0 : 1 << 6) | 1); // UNPACR
    }

    // Columns 2·pair and 2·pair + 1 of a row of Dst.
    u32 dst(u32 row, u32 pair) {
        put(DEBUG + 0x64, 2 << 16 | pair << 12 | row);
        return get(DEBUG + 0x6c);
    }

private:
    std::uint64_t bar;
    std::vector<u32> stores;

    void open_window(u32 window, u32 address) {
        const u32 tile = is_blackhole ? 1 | 2 << 6 : 1 | 1 << 6; // x and y
        const u32 at = 0x1fc00000 + window * (is_blackhole ? 12 : 8);
        const u32 entry[] = {is_blackhole ? address >> 21 : address >> 20 | tile << 16,
                             is_blackhole ? tile << 11 : tile >> 16, 0};
        for (u32 word = 0; word < (is_blackhole ? 3 : 2); ++word)
            libttsim_pci_mem_wr_bytes(bar + at + 4 * word, &entry[word], 4);
    }
    std::uint64_t seen(u32 address) const {
        const u32 size = is_blackhole ? 1 << 21 : 1 << 20;
        return bar + (address < DEBUG ? 0 : size) + address % size;
    }
};

enum format : u32 { F32 = 0, F16 = 1, TF32 = 4, BF16 = 5, E5M2 = 10 };

// D = A·B + C, where A is 8×16 and B 16×16: one MVMUL for each of the first `phases` fidelity phases. A phase
// multiplies part of each significand: phase 0 the highest 7 bits of A's by the highest 5 of B's, phase 1 takes the
// next 5 of B's instead, phase 2 the lowest 4 of A's, phase 3 both.
static void mvmul(chip &chip, const mxprobe::tile &t, format ab, format d, u32 phases) {
    const u32 in = ab == TF32 ? F32 : ab, width = ab == TF32 ? 4 : ab == E5M2 ? 1 : 2;
    chip.write(A, t.a<void>(), 128 * width);
    chip.write(B, t.b<void>(), 256 * width);
    chip.write(C, t.c<void>(), d == F32 ? 512 : 256);
    // The formats of SrcA, SrcB and Dst; Dst is of 32 bits if the last bit is set.
    const auto formats = [&](format source) { chip.configure(1, source << 17 | source << 21 | d << 25 | (d == F32) << 29); };
    if (d == F32) {
        chip.unpack(0, C, 128, F32, F32, true);
    } else { // into Dst via SrcA
        formats(d);
        chip.unpack(0, C, 128, d, d);
        chip.issue(0x12, 2 << 12); // MOVA2D
        chip.issue(0x36, 1 << 22); // CLEARDVALID
    }
    formats(ab);
    chip.unpack(0, B, 256, in, ab);
    chip.unpack(1, A, 128, in, ab);
    const u32 mode_1 = chip.is_blackhole ? 1 << 14 : 1 << 15, release_operands = 3 << 22;
    for (u32 phase = 1; phase < phases; ++phase) chip.issue(0x26, mode_1); // MVMUL
    chip.issue(0x26, release_operands);                                   // MVMUL
    chip.run();
    // Dst holds sign, fraction and exponent in this order; the low half of f32 is eight rows further down.
    const u32 exponent = d == F16 ? 5 : 8, fraction = 15 - exponent;
    for (u32 at = 0; at < 128; at += 2) {
        const u32 high = chip.dst(at / 16, at % 16 / 2), low = d == F32 ? chip.dst(8 + at / 16, at % 16 / 2) : 0;
        for (u32 odd = 0; odd < 2; ++odd) {
            const u32 x = high >> 16 * odd;
            const u32 bits = (x & 0x8000) | (x & ((1u << exponent) - 1)) << fraction | (x & 0x7fff) >> exponent;
            if (d == F32) t.d<u32>()[at + odd] = bits << 16 | (low >> 16 * odd & 0xffff);
            else t.d<std::uint16_t>()[at + odd] = static_cast<std::uint16_t>(bits);
        }
    }
}

int main() {
    static chip chip;
    mxprobe::device device(chip.is_blackhole ? "Tenstorrent Blackhole (ttsim)" : "Tenstorrent Wormhole (ttsim)");
    device.fingerprint = chip.is_blackhole ? "ttsim-blackhole" : "ttsim-wormhole";
    device.kind = "model";
    const struct {
        const char *id;
        format ab, d;
    } pairs[] = {
        {"f32.bf16.bf16.f32", BF16, F32}, {"f32.tf32.tf32.f32", TF32, F32},    {"f32.f16.f16.f32", F16, F32},
        {"f32.e5m2.e5m2.f32", E5M2, F32}, {"bf16.bf16.bf16.bf16", BF16, BF16}, {"f16.f16.f16.f16", F16, F16},
    };
    const char *const fidelity[] = {"lofi", "hifi2", "hifi3", "hifi4"};
    for (const auto &pair : pairs)
        for (u32 phases = 1; phases <= 4; ++phases)
            device.add("mvmul.m8n16k16." + std::string(pair.id) + "." + fidelity[phases - 1],
                       [=](const mxprobe::tile &t) { mvmul(chip, t, pair.ab, pair.d, phases); }, "core", "MVMUL");
    return mxprobe::serve({device});
}
