#include "tensors/digests.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
