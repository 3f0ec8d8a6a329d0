#include "tensors/memory/ledger.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

TEST(MemoryLedgerTest, AddsUpWhatOwnersHoldWhenAsked) {
  MemoryLedger ledger;
  std::vector<at::Tensor> copies;
  ledger.add(HeldFor::kParameters, [] { return 100.0; });
  ledger.add(HeldFor::kParameters,
             [&] { return bytes_of(copies, [](const at::Tensor& copy) { return copy; }); });
  ledger.add(HeldFor::kBatch, [] { return 3.0; });
  EXPECT_EQ(ledger.held()[HeldFor::kParameters], 100);
  copies.push_back(at::zeros({5}));
  const HeldBytes held = ledger.held();
  EXPECT_EQ(held[HeldFor::kParameters], 120) << "copies that are made later count";
  EXPECT_EQ(held[HeldFor::kGradients], 0);
  EXPECT_EQ(held.total(), 123);
}

}  // namespace
}  // namespace tutti
