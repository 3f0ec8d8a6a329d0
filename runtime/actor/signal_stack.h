#pragma once

#include <signal.h>

#include <cstddef>
#include <memory>

namespace tutti {

// Gives the calling thread a separate stack for signal handlers (SA_ONSTACK) during the object's lifetime, so
// that handlers can run after a stack overflow.
class SignalStack {
 public:
  SignalStack() : memory_(new std::byte[kBytes]) {
    const stack_t stack{memory_.get(), 0, kBytes};
    ::sigaltstack(&stack, nullptr);
  }
  ~SignalStack() {
    const stack_t none{nullptr, SS_DISABLE, 0};
    ::sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 16;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace tutti
