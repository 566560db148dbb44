import type ssh2 from 'ssh2';
import type { AppError } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import { hostAuthFailed } from '../../../host/host-problems.ts';
import { AUTHENTICATION_METHODS } from '../../policy.ts';
import type { SshTarget } from '../../target.ts';
import type { Deadline } from '../client/deadline.ts';
import type { Candidate, KeyCandidates } from './identities.ts';

/** One login attempt: chooses the next method each time ssh2 asks, and records the methods tried. */
export interface Authentication {
  readonly handler: (left: readonly string[] | null, partial: boolean | null, next: (method: ssh2.AnyAuthMethod | false) => void) => void;
  failure(why: string | undefined, cause: unknown): AppError;
}

/**
 * Public keys first, then the password, then the password as the answer to keyboard-interactive, unless
 * ssh_config sets another order or fewer methods. Methods that the host does not accept are skipped. After a
 * partial success (several factors) the remaining methods follow.
 */
export function authentication(
  target: SshTarget,
  keys: KeyCandidates,
  options: { readonly password: Secret | undefined; readonly address: string; readonly deadline: Deadline },
): Authentication {
  const { password, address, deadline } = options;
  const candidates = [...keys.candidates, ...passwordCandidates(target.user, password)];
  const waiting = (target.policy?.methods ?? AUTHENTICATION_METHODS).flatMap((method) => candidates.filter(({ type }) => type === method));
  const tried: string[] = [];
  const skipped = [...keys.skipped];
  let accepts: readonly string[] = [];
  let last: ssh2.AnyAuthMethod | undefined;

  const takeNext = async (): Promise<ssh2.AnyAuthMethod | false> => {
    for (let i = 0; i < waiting.length; ) {
      const candidate = waiting[i] as Candidate;
      if (accepts.length > 0 && !accepts.includes(candidate.type)) {
        i++;
        continue;
      }
      waiting.splice(i, 1);
      const prepared = await deadline.paused(() => candidate.prepare((why) => skipped.push(why)));
      if (prepared.kind === 'skipped') {
        skipped.push(prepared.why);
        continue;
      }
      tried.push(candidate.label);
      last = prepared.method;
      return last;
    }
    if (accepts.length > 0 || last?.type === 'none') return false;
    // The accepted methods are still unknown: this request makes the host list them, and a host without
    // authentication accepts it.
    last = { type: 'none', username: target.user };
    return last;
  };

  return {
    handler: (left, _partial, next) => {
      // After an agent key, ssh2 (1.17) repeats the previous list of methods, which may be outdated.
      accepts = left === null || last?.type === 'agent' ? [] : left;
      takeNext().then(next, () => next(false));
    },
    failure: (why, cause) =>
      hostAuthFailed({
        host: target.name,
        user: target.user,
        address,
        tried,
        skipped: [...skipped, ...waiting.map(({ label }) => `${label} (the host does not accept it)`)],
        accepts,
        why,
        cause,
      }),
  };
}

function passwordCandidates(username: string, password: Secret | undefined): readonly Candidate[] {
  if (password === undefined) return [];
  return [
    {
      type: 'password',
      label: 'password',
      prepare: async () => ({ kind: 'ready', method: { type: 'password', username, password: password.reveal() } }),
    },
    {
      type: 'keyboard-interactive',
      label: 'password (keyboard-interactive)',
      prepare: async () => ({ kind: 'ready', method: { type: 'keyboard-interactive', username, prompt: answerWith(password) } }),
    },
  ];
}

/**
 * Answers the first hidden prompt with the password and all others with an empty text, such as the prompt for
 * a second factor.
 */
function answerWith(password: Secret): ssh2.KeyboardInteractiveAuthMethod['prompt'] {
  let isGiven = false;
  return (_name, _instructions, _language, prompts, finish) => {
    const answers = prompts.map(({ echo }) => {
      if (echo || isGiven) return '';
      isGiven = true;
      return password.reveal();
    });
    finish(answers);
  };
}
