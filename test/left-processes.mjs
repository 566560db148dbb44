import { readdirSync, readFileSync } from 'node:fs';

const LOCAL_SESSION = /(?:^|\0)SSH_CONNECTION=(?:127\.0\.0\.1|::1) /;

/**
 * Processes that a test run left behind: without a parent, and with an environment that names the directory of the run
 * or a session of one of its SSH servers. Waits a moment for processes that are about to exit.
 * @param directory the directory of the run
 * @param since start of the run in milliseconds since 1970
 * @returns one line per process: process id and command line; empty without /proc
 */
export async function leftProcesses(directory, since) {
  for (let attempt = 0; ; attempt++) {
    const left = list(directory, since);
    if (left.length === 0 || attempt === 20) return left;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function list(directory, since) {
  return entries().flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // After the name in parentheses: state, parent, ...; the 20th field is the start time in hundredths of a second since boot.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      const startedAt = bootTime() + Number(fields[19]) * 10;
      if (fields[0] === 'Z' || fields[1] !== '1' || startedAt < since - 1_000) return [];
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      if (!environment.includes(directory) && !LOCAL_SESSION.test(environment)) return [];
      return [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()}`];
    } catch {
      // The process has exited meanwhile, or belongs to another user.
      return [];
    }
  });
}

function entries() {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Boot time of the local host in milliseconds since 1970. */
function bootTime() {
  return Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) * 1_000;
}
