#include "common/harness/run/python_program.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "common/harness/device/device.hpp"

extern char** environ;

namespace convladder {
namespace {

std::string python() {
  if (const char* chosen = std::getenv("CONVLADDER_PYTHON"); chosen && *chosen) return chosen;
  const std::filesystem::path own = CONVLADDER_BASELINES "/bin/python";
  std::error_code error;
  return std::filesystem::exists(own, error) ? own.string() : "python3";
}

}  // namespace

PythonProgram::~PythonProgram() { end(); }

void PythonProgram::start() {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0) throw DeviceError(fmt::format("no pipe to Python: {}", std::strerror(errno)));
  if (pipe2(from, O_CLOEXEC) != 0) {
    const int reason = errno;
    close(to[0]), close(to[1]);
    throw DeviceError(fmt::format("no pipe from Python: {}", std::strerror(reason)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::string script = script_.string();
  char* arguments[] = {python_.data(), script.data(), nullptr};
  const int status = posix_spawnp(&process_, python_.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]), close(from[1]);
  requests_ = fdopen(to[1], "w");
  answers_ = fdopen(from[0], "r");
  if (status == 0) return;
  process_ = 0;
  end();
  throw DeviceError(
      fmt::format("{} does not run: {}; name a Python in CONVLADDER_PYTHON", python_, std::strerror(status)));
}

void PythonProgram::end() {
  if (requests_) std::fclose(std::exchange(requests_, nullptr));
  if (answers_) std::fclose(std::exchange(answers_, nullptr));
  if (process_ == 0) return;
  kill(process_, SIGTERM);  // it may be importing, and keeps nothing
  waitpid(std::exchange(process_, 0), nullptr, 0);
}

void PythonProgram::begin() noexcept {
  try {
    if (!requests_) start();
  } catch (const std::exception&) {
  }
}

nlohmann::json PythonProgram::ask(const nlohmann::json& request) {
  if (!requests_) start();
  // A program that has ended must not end this one.
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const bool sent = std::fputs((request.dump() + "\n").c_str(), requests_) >= 0 && std::fflush(requests_) == 0;
  std::signal(SIGPIPE, before);
  char* line = nullptr;
  std::size_t size = 0;
  const bool answered = sent && getline(&line, &size, answers_) > 0;
  const std::unique_ptr<char, void (*)(void*)> owned(line, &std::free);
  if (!answered) {
    end();
    throw DeviceError(fmt::format("{} {} ended without an answer", python_, script_.filename().string()));
  }
  const auto answer = nlohmann::json::parse(line, nullptr, false);
  if (!answer.is_object()) {
    end();
    throw DeviceError(fmt::format("{} answered no JSON object: {}", script_.filename().string(), line));
  }
  if (answer.contains("error")) throw DeviceError(answer["error"].get<std::string>());
  return answer;
}

PythonProgram& python_rows_program() {
  static PythonProgram program(python(), CONVLADDER_PYTHON_ROWS);
  return program;
}

}  // namespace convladder
