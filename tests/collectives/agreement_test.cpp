#include "collectives/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "collectives/local/group.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// The statements that each rank receives.
std::vector<std::vector<Statement>> heard(const std::vector<Statement>& said) {
  const int size = static_cast<int>(said.size());
  const auto fabric = LocalFabric::make(size);
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<AgreementRound>> rounds;
  for (int rank = 0; rank < size; ++rank) {
    groups.push_back(fabric->group(rank));
    rounds.push_back(std::make_unique<AgreementRound>(*groups[rank], said[rank]));
  }
  const auto done = [](const auto& round) { return round->done(); };
  for (int looks = 0; looks < 100 && std::ranges::count_if(rounds, done) < size; ++looks) {
  }
  std::vector<std::vector<Statement>> all;
  for (const auto& round : rounds) all.push_back(round->statements());
  return all;
}

std::string text_of(int64_t bytes) {
  std::string text;
  for (int64_t i = 0; i < bytes; ++i) text += static_cast<char>('a' + i % 23);
  return text;
}

TEST(AgreementTest, TextsOfAnyLengthReachAllRanks) {
  constexpr int64_t kPart = AgreementRound::kPartBytes;
  for (const int64_t bytes :
       {int64_t{0}, kPart - 2, kPart - 1, kPart, 2 * kPart - 2, 2 * kPart - 1, 10 * kPart + 7})
    for (const auto& all : heard({{.text = "first"}, {.text = text_of(bytes)}, {.text = text_of(3000)}})) {
      EXPECT_EQ(all[0].text, "first");
      EXPECT_EQ(all[1].text, text_of(bytes)) << bytes;
      EXPECT_EQ(all[2].text, text_of(3000)) << bytes;
      for (const Statement& one : all) EXPECT_EQ(one.trouble, "");
    }
}

TEST(AgreementTest, TroubleIsDistinguishedFromText) {
  for (const auto& all : heard({{.text = "fine"}, {.trouble = "no data"}})) {
    EXPECT_EQ(all[0].trouble, "");
    EXPECT_EQ(all[0].text, "fine");
    EXPECT_EQ(all[1].trouble, "no data");
    EXPECT_EQ(all[1].text, "");
  }
}

TEST(AgreementTest, ALackOfMemoryIsNoMistakeOfTheUser) {
  const auto kind = [](const Statement& trouble) {
    try {
      agreed_texts(heard({{.text = "fine"}, trouble})[0]);
    } catch (const UserError& error) {
      EXPECT_STREQ(error.what(), "rank 1: no room");
      return error.kind();
    }
    return EndKind::kDone;
  };
  EXPECT_EQ(kind({.trouble = "no room"}), EndKind::kRefused);
  EXPECT_EQ(kind({.trouble = "no room", .lacks_memory = true}), EndKind::kOutOfMemoryElsewhere);
  EXPECT_EQ(exit_code(EndKind::kOutOfMemoryElsewhere), 1);
}

TEST(AgreementTest, AShortRoundIsOneCollective) {
  const auto group = LocalFabric::make(1)->group(0);
  agree(*group, {.text = text_of(AgreementRound::kPartBytes - 2)});
  EXPECT_EQ(group->posted(10).size(), 1u);
  agree(*group, {.text = text_of(AgreementRound::kPartBytes - 1)});
  EXPECT_EQ(group->posted(10).size(), 3u);
}

TEST(AgreementTest, ARankThatDoesNotComeEndsTheWaiting) {
  const auto group = LocalFabric::make(2)->group(0);
  try {
    agree(*group, {}, std::chrono::milliseconds(20));
    FAIL() << "one rank agreed";
  } catch (const CollectiveError& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not get ready to train"));
  }
}

}  // namespace
}  // namespace tutti
