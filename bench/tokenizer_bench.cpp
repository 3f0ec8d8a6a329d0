// Answers requests about tokenizers, one a line of the standard input, with one line each:
//   {"tokenizer": FILE, "texts": [...]}: the ids of each text, the text that they decode to, and the same in
//   a stream of ids.
//   {"tokenizer": FILE, "file": FILE, "bytes": n, "repeats": n}: nanoseconds of processor time to make ids of
//   the file in documents of about so many bytes, and the ids of one round, added up by their place.
// bench/tokenizers.py and tests/clients_tokenizers.py ask this program and the `tokenizers` package alike.
#include <time.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "data/tokenizers/tokenizer.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Json = nlohmann::json;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

int64_t processor_ns() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

Json answer_texts(const TokenizerPtr& tokenizer, const Json& texts) {
  Json ids = Json::array(), decoded = Json::array(), streamed = Json::array();
  for (const Json& text : texts) {
    const std::vector<uint32_t> own = tokenizer->encode(text.get<std::string>());
    TokenStream stream(tokenizer, /*skip_special=*/false);
    std::string parts;
    for (const uint32_t id : own) parts += stream.add(id);
    ids.push_back(own);
    decoded.push_back(tokenizer->decode(own, /*skip_special=*/false));
    streamed.push_back(parts + stream.finish());
  }
  return {{"ids", ids}, {"decoded", decoded}, {"streamed", streamed}};
}

// Documents of lines, each of `bytes` or more.
std::vector<std::string> documents(const std::string& path, std::size_t bytes) {
  std::ifstream in(path);
  std::vector<std::string> all(1);
  for (std::string line; std::getline(in, line);) {
    if (all.back().size() >= bytes) all.emplace_back();
    all.back() += line + '\n';
  }
  return all;
}

Json answer_time(const Tokenizer& tokenizer, const Json& request) {
  const std::vector<std::string> texts = documents(request.at("file"), request.at("bytes"));
  std::vector<uint32_t> ids;
  uint64_t sum = 0, count = 0;
  const int64_t begin = processor_ns();
  for (int repeat = 0; repeat < request.at("repeats").get<int>(); ++repeat) {
    sum = count = 0;
    for (const std::string& text : texts) {
      ids.clear();
      tokenizer.encode(text, ids);
      for (const uint32_t id : ids) sum += ++count * id;
    }
  }
  return {{"ns", processor_ns() - begin}, {"ids", count}, {"sum", sum}};
}

Json answer(std::map<std::string, TokenizerPtr>& tokenizers, const Json& request) {
  TokenizerPtr& tokenizer = tokenizers[request.at("tokenizer")];
  if (!tokenizer) tokenizer = Tokenizer::read(request.at("tokenizer"));
  return request.contains("texts") ? answer_texts(tokenizer, request.at("texts"))
                                   : answer_time(*tokenizer, request);
}

}  // namespace
}  // namespace tutti

int main() {
  std::map<std::string, tutti::TokenizerPtr> tokenizers;
  for (std::string line; std::getline(std::cin, line);) try {
      std::cout << tutti::answer(tokenizers, nlohmann::json::parse(line)) << std::endl;
    } catch (const tutti::UserError& error) {
      std::cout << nlohmann::json{{"error", error.what()}} << std::endl;
    }
}
