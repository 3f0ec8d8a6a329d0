#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/random.h"

namespace tutti {

// Of each kind of file; `make nightly` asks for 10,000.
inline int mutations(int by_day = 300) {
  const char* const asked = std::getenv("TUTTI_MUTATIONS");
  return asked == nullptr ? by_day : std::atoi(asked);
}

// Texts that a reader may stumble over.
inline const std::vector<std::string>& hard_texts() {
  static const std::vector<std::string> texts = {
      std::string(100'000, '['),
      "{\"a\":" + std::string(50'000, '[') + std::string(50'000, ']') + "}",
      [] {
        std::string objects;
        for (int i = 0; i < 50'000; ++i) objects += "{\"a\":";
        return objects;
      }(),
      [] {
        std::string dotted = "a";
        for (int i = 0; i < 50'000; ++i) dotted += ".a";
        return "[" + dotted + "]\n" + dotted + " = 1\n";
      }(),
      "-1",
      "1e999",
      "18446744073709551615",
      "9223372036854775807",
      "null",
      "\"\\u0000\"",
      "\"",
      "\xff\xfe",
      std::string(16, '\0'),
      std::string(70'000, 'a'),
      "{}",
      "\n"};
  return texts;
}

// One change of a file, drawn from its number.
class Mutation {
 public:
  explicit Mutation(int number) : draw_(RandomKey(number, "mutation")) {}

  std::string of(std::string bytes) {
    for (uint64_t left = 1 + below(3); left > 0; --left) change(bytes);
    return bytes;
  }

  std::vector<uint64_t> numbers(int count) {
    std::vector<uint64_t> drawn;
    for (int i = 0; i < count; ++i) drawn.push_back(below(uint64_t{1} << 32));
    return drawn;
  }

 private:
  uint64_t below(uint64_t n) { return draw_.below(n, counter_++); }

  void change(std::string& bytes) {
    const uint64_t at = below(bytes.size() + 1);
    const uint64_t length = below(1 + std::min<uint64_t>(bytes.size() - at, 64));
    switch (below(6)) {
      case 0:
        if (at < bytes.size()) bytes[at] ^= static_cast<char>(1 << below(8));
        break;
      case 1:
        for (uint64_t i = at; i < at + length; ++i) bytes[i] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.resize(at);
        break;
      case 5:
        bytes.replace(at, length, hard_texts()[below(hard_texts().size())]);
        break;
    }
  }

  RandomKey draw_;
  uint64_t counter_ = 0;
};

}  // namespace tutti
