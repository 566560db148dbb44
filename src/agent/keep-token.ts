import { accountOf, readTokenClaims, renewAt, TOKEN_SECONDS, type TokenClaims } from '../core/dynamic/agent/token-claims.ts';
import { isAppError } from '../core/errors.ts';
import { SensitiveText } from '../core/text/secret.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Host } from '../ports/host.ts';
import type { Reporter } from '../ports/reporter.ts';

export interface KeepTokenOptions {
  /** Logs in with the token of that file, and looks at it again now and then. */
  readonly cluster: Cluster;
  readonly host: Host;
  readonly file: string;
  readonly clock: Clock;
  readonly reporter: Reporter;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Clocks jump, and files are replaced by hand: the token is looked at again after this. Nobody else is asked. */
const LOOK_MS = 3_600_000;
const AGAIN_MS = 60_000;

/**
 * Keeps the token of an agent alive: after a third of its life the next one is asked for, and written in its place. What fails is tried again, so that an agent
 * that was away for less than two thirds of the life of its token needs nobody. Ends when the signal is aborted, or when there is no token of an account.
 */
export async function keepToken(options: KeepTokenOptions): Promise<void> {
  const { clock, signal, random, reporter, host, file } = options;
  const report = (level: 'info' | 'warning', code: string, message: string): void =>
    reporter.report({ level, code, message, host: host.name });
  for (let failures = 0; !signal.aborted; ) {
    let pauseMs: number;
    try {
      const claims = await readToken(options);
      if (claims === null)
        return report('warning', 'AGENT_TOKEN_UNKNOWN', `${file} holds no token of a service account: it is not renewed`);
      const dueMs = renewAt(claims) - clock.now().getTime();
      if (dueMs <= 0) {
        const until = await renew(options, claims);
        report('info', 'AGENT_TOKEN_RENEWED', `the token was renewed, it is good until ${until.toISOString()}`);
      }
      failures = 0;
      pauseMs = Math.min(Math.max(dueMs, AGAIN_MS), LOOK_MS);
    } catch (error) {
      if (signal.aborted) return;
      // An API server that is away is told of by those who follow the Node.
      if (!isAppError(error, 'CLUSTER_UNREACHABLE') || failures === 0)
        report(
          'warning',
          'AGENT_TOKEN_NOT_RENEWED',
          `the token was not renewed: ${error instanceof Error ? error.message : String(error)}`,
        );
      pauseMs = Math.min(AGAIN_MS * 2 ** Math.min(failures, 10), LOOK_MS) * (0.5 + random());
      failures++;
    }
    await clock.sleep(pauseMs, signal).catch(() => undefined);
  }
}

async function readToken({ host, file, signal }: KeepTokenOptions): Promise<TokenClaims | null> {
  const { found } = await host.ask({ found: { kind: 'file', path: file } }, { signal });
  return readTokenClaims(found?.content ?? '');
}

async function renew({ cluster, host, file }: KeepTokenOptions, { subject }: TokenClaims): Promise<Date> {
  const account = accountOf(subject);
  if (account === null) throw new Error(`${subject} is no service account`);
  const { token, expiresAt } = await cluster.requestToken(account, TOKEN_SECONDS);
  await host.perform([{ kind: 'write-file', path: file, mode: 0o600, owner: 'root:root', content: new SensitiveText([token, '\n']) }]);
  return expiresAt;
}
