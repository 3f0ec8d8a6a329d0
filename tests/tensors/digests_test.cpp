#include "tensors/digests.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "tensors/kernels/digest_sums.h"

namespace tutti {
namespace {

// Keeps the recorded digests.
class Notes final : public Recorder {
 public:
  struct Note {
    std::string key;
    int64_t step;
    uint64_t value;
    std::vector<uint16_t> parts;
  };
  void record(const TraceEvent&) override {}
  std::vector<TraceEvent> last(int) const override { return {}; }
  void digest(const Digest& digest) override {
    notes.push_back(
        {std::string(digest.key), digest.step, digest.value, {digest.parts.begin(), digest.parts.end()}});
  }
  void name_parts(std::string_view, const std::vector<std::string>& names) override { parts = names; }

  std::vector<Note> notes;
  std::vector<std::string> parts;
};

TEST(DigestsTest, ChunksOfTheRanksCoverEveryByteOnce) {
  const std::vector<DigestPart> parts = {{"a", 0, 40}, {"b", 64, 1000}, {"c", 1024, 1028}};
  for (const int world : {1, 2, 3, 7}) {
    std::vector<int> seen(1100, 0);
    for (int rank = 0; rank < world; ++rank)
      for (const auto& part : parts_of_chunk(parts, 1100, world, rank))
        for (int64_t byte = part.begin; byte < part.end; ++byte) ++seen[byte];
    for (int64_t byte = 0; byte < 1100; ++byte) {
      const bool named = byte < 40 || (byte >= 64 && byte < 1000) || (byte >= 1024 && byte < 1028);
      EXPECT_EQ(seen[byte], named ? 1 : 0) << "byte " << byte << " of " << world << " ranks";
    }
  }
}

TEST(DigestsTest, PartsShowWhichTensorDiffers) {
  Notes notes;
  WindowedDigest digest("sync/bucket 0", {{"a", 0, 64}, {"b", 64, 128}, {"c", 192, 256}}, notes);
  at::Tensor flat = at::arange(64, at::kFloat);
  digest.record(3, flat);
  flat.data_ptr<float>()[20] += 1;  // b
  digest.record(3, flat);
  flat.data_ptr<float>()[40] += 1;  // between b and c
  digest.record(3, flat);
  EXPECT_EQ(notes.parts, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(notes.notes.size(), 3u);
  EXPECT_EQ(notes.notes[0].key, "sync/bucket 0");
  EXPECT_EQ(notes.notes[0].step, 3);
  EXPECT_NE(notes.notes[0].value, notes.notes[1].value);
  EXPECT_EQ(notes.notes[0].parts[0], notes.notes[1].parts[0]);
  EXPECT_NE(notes.notes[0].parts[1], notes.notes[1].parts[1]);
  EXPECT_EQ(notes.notes[0].parts[2], notes.notes[1].parts[2]);
  EXPECT_EQ(notes.notes[1].value, notes.notes[2].value) << "what is nobody's is not hashed";
}

TEST(DigestsTest, TheWindowComesToEveryByteOfALargeTensor) {
  constexpr int64_t kBytes = 5 * WindowedDigest::kWindow / 2;  // three windows
  Notes notes;
  WindowedDigest digest("sync/bucket 0", {{"a", 0, kBytes / 2}, {"b", kBytes / 2, kBytes}}, notes);
  at::Tensor flat = at::zeros({kBytes}, at::kByte);
  for (const int64_t changed : {int64_t{0}, kBytes / 2, kBytes - 1}) {
    notes.notes.clear();
    for (int step = 0; step < 3; ++step) digest.record(step, flat);
    flat.data_ptr<uint8_t>()[changed] ^= 1;
    for (int step = 0; step < 3; ++step) digest.record(step, flat);
    int differ = 0;
    for (int step = 0; step < 3; ++step) differ += notes.notes[step].value != notes.notes[step + 3].value;
    EXPECT_EQ(differ, 1) << "byte " << changed;
  }
}

uint64_t digest_of_bytes(const at::Tensor& bytes) {
  Notes notes;
  WindowedDigest("x", {{"a", 0, bytes.numel()}}, notes).record(0, bytes);
  return notes.notes[0].value;
}

// As a kernel's threads do it: each some pairs, in any order.
uint64_t digest_by_pairs(const at::Tensor& bytes, int64_t threads) {
  const auto* data = bytes.const_data_ptr<uint8_t>();
  const int64_t count = bytes.numel();
  DigestSums sums;
  for (int64_t thread = threads - 1; thread >= 0; --thread) {
    for (int64_t pair = thread; pair < digest_pairs(count); pair += threads) {
      const DigestPair places = digest_pair(pair, count);
      const uint32_t first = digest_word(data, places.first, count);
      const uint32_t second = digest_word(data, places.second, count);
      sums.products += digest_product(first, second, digest_keys(pair));
      sums.words += first + second;
    }
  }
  return mix_bits(mix_bits(0) ^ digest_of(sums, count));
}

TEST(DigestsTest, SumsHaveNoOrder) {
  at::manual_seed(3);
  const at::Tensor bytes = at::randint(256, {3 * kDigestBlock + 9}, at::kByte);
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 4101, 8192, 12290})
    for (const int64_t from : {0, 1, 3}) {
      const at::Tensor some = bytes.narrow(0, from, count).clone();
      EXPECT_EQ(digest_of_bytes(some), digest_by_pairs(some, 1)) << count;
      EXPECT_EQ(digest_of_bytes(some), digest_by_pairs(some, 7)) << count;
    }
}

TEST(DigestsTest, EachChangeHasADigestOfItsOwn) {
  at::manual_seed(4);
  for (const bool random : {true, false}) {
    std::set<uint64_t> seen;
    int64_t expected = 0;
    const auto add = [&](const at::Tensor& bytes) {
      seen.insert(digest_of_bytes(bytes));
      EXPECT_EQ(std::ssize(seen), ++expected);
    };
    const int64_t count = kDigestBlock + 196;  // with a byte or four more it has as many pairs
    const at::Tensor bytes = random ? at::randint(256, {count}, at::kByte) : at::zeros({count}, at::kByte);
    add(bytes);
    for (int64_t bit = 0; bit < 8 * count; bit += bit < 1000 ? 1 : 37) {
      const at::Tensor changed = bytes.clone();
      changed.data_ptr<uint8_t>()[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
      add(changed);
    }
    for (const int64_t more : {1, 4, 8, 4096}) add(at::cat({bytes, at::zeros({more}, at::kByte)}));
    if (!random) continue;
    const at::Tensor words = bytes.view(at::kInt);
    for (const int64_t other : {1, 5, 512, 1000, 1030}) {  // two words change places
      at::Tensor changed = words.clone();
      changed[3] = words[other + 3];
      changed[other + 3] = words[3];
      add(changed.view(at::kByte));
      add(words.roll(other).view(at::kByte));
    }
    add(words.bitwise_xor(std::numeric_limits<int32_t>::min()).view(at::kByte));  // signs
    add(words.flip(0).view(at::kByte));
  }
}

TEST(DigestsTest, AWordCountsWhosePartnerIsMultipliedAsZero) {
  const DigestKeys keys = digest_keys(0);
  const at::Tensor words = at::tensor({int64_t{7}, static_cast<int64_t>(keys.second)}).to(at::kInt);
  const at::Tensor other = at::tensor({int64_t{8}, static_cast<int64_t>(keys.second)}).to(at::kInt);
  EXPECT_EQ(digest_product(7, keys.second, keys), digest_product(8, keys.second, keys));
  EXPECT_NE(digest_of_bytes(words.view(at::kByte)), digest_of_bytes(other.view(at::kByte)));
}

TEST(DigestsTest, TensorsThatAreNotDenseAreHashedByValue) {
  Notes notes;
  TensorsDigest digest("compute/batch", notes);
  const at::Tensor image = at::arange(24, at::kFloat).view({2, 3, 4});
  digest.record(0, {{"input", image}});
  digest.record(0, {{"input", image.repeat({1, 1, 2}).narrow(2, 0, 4)}});
  digest.record(0, {{"input", image + 1}});
  EXPECT_EQ(notes.notes[0].value, notes.notes[1].value);
  EXPECT_NE(notes.notes[0].value, notes.notes[2].value);
  EXPECT_EQ(notes.parts, std::vector<std::string>{"input"});
}

}  // namespace
}  // namespace tutti
