import type ssh2 from 'ssh2';
import type { AppError } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import { hostAuthFailed } from '../../../host/host-problems.ts';
import { LOGIN_METHODS } from '../../policy.ts';
import type { SshTarget } from '../../target.ts';
import type { Deadline } from './deadline.ts';
import type { KeyCandidates } from './identities.ts';

/** One login: chooses the next method each time ssh2 asks, and keeps account of it. */
export interface Authentication {
  readonly handler: (left: readonly string[] | null, partial: boolean | null, next: (method: ssh2.AnyAuthMethod | false) => void) => void;
  /** What to throw when the host let nobody in. */
  failure(why: string | undefined, cause: unknown): AppError;
}

interface Candidate {
  readonly type: 'publickey' | 'password' | 'keyboard-interactive' | 'none';
  readonly label: string;
  /** @param onSkipped is called when it turns out later that the candidate cannot be used */
  prepare(
    onSkipped: (why: string) => void,
  ): Promise<{ readonly kind: 'ready'; readonly method: ssh2.AnyAuthMethod } | { readonly kind: 'skipped'; readonly why: string }>;
}

/**
 * Public keys first, then the password, then the password as an answer to keyboard-interactive, unless ssh_config demands another order or fewer. A method that
 * the host does not accept is not tried. After a partial success (several factors) it goes on with what is left.
 */
export function authentication(
  target: SshTarget,
  keys: KeyCandidates,
  options: { readonly password: Secret | undefined; readonly address: string; readonly deadline: Deadline },
): Authentication {
  const { password, address, deadline } = options;
  const candidates = [...keyCandidates(keys), ...passwordCandidates(target.user, password)];
  const waiting = (target.policy?.methods ?? LOGIN_METHODS).flatMap((method) => candidates.filter(({ type }) => type === method));
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
    // What the host accepts is not known yet: this request makes the host report it, and a host without any lock lets us in.
    last = { type: 'none', username: target.user };
    return last;
  };

  return {
    handler: (left, _partial, next) => {
      // After a key of an agent ssh2 repeats what it received before that (1.17), which may be out of date.
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
        ...(why === undefined ? {} : { why }),
        cause,
      }),
  };
}

function keyCandidates({ candidates }: KeyCandidates): readonly Candidate[] {
  return candidates.map((key) => ({ type: 'publickey', label: key.label, prepare: (onSkipped) => key.method(onSkipped) }));
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

/** Gives the password to the first hidden question, and nothing to any other: a second factor is not ours to guess. */
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
