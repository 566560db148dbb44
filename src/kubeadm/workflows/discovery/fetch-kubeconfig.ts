import { AppError, type Problem } from '../../../base/errors.ts';
import { documentUnavailable } from '../../discovery/discovery-problems.ts';
import { explainFailure } from '../../discovery/explain-failure.ts';
import { type Attempt, type Deadline, type DiscoveryContext, requestTimeoutMs, waitFor } from './wait-for.ts';

const MAX_REDIRECTS = 10;
const MAX_BYTES = 1024 * 1024;

/**
 * Fetches the kubeconfig of discovery from an https URL, whose server has to prove its name to this machine. Redirections are followed as long as they lead
 * to https.
 * @throws AppError DISCOVERY_*, exit code 3 where waiting does not help, else 1
 * @see kubeadm 1.36 discovery/https, which follows redirections anywhere and takes an answer of any status
 */
export async function fetchKubeconfig(context: DiscoveryContext, deadline: Deadline, url: string): Promise<string> {
  return waitFor(context, deadline, async () => {
    let next = url;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const result = await fetchOnce(context, deadline, next);
      if (!('redirect' in result)) return result;
      next = result.redirect;
    }
    throw refusal(documentUnavailable(withoutSecrets(url), `more than ${MAX_REDIRECTS} redirections`));
  });
}

async function fetchOnce(
  { web, clock, signal }: DiscoveryContext,
  deadline: Deadline,
  url: string,
): Promise<Attempt<string> | { readonly redirect: string }> {
  const shown = withoutSecrets(url);
  const request = { url, trust: { kind: 'machine' }, timeoutMs: requestTimeoutMs(deadline, clock), maxBytes: MAX_BYTES } as const;
  const answer = await web.get({ ...request, ...(signal === undefined ? {} : { signal }) });
  if (answer.kind === 'failed') {
    const about = { endpoint: shown, authority: 'an authority that this machine trusts', clock: { local: clock.now(), remote: null } };
    const { kind, problem } = explainFailure(answer.issue, about);
    if (kind === 'wait') return { wait: problem };
    throw refusal(problem);
  }
  const { status, text, location, contentType } = answer;
  const unavailable = (why: string): Problem => documentUnavailable(shown, why);
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.canParse(location, url) ? new URL(location, url) : null;
    if (target?.protocol !== 'https:') throw refusal(unavailable('it redirects to what is not https'));
    return { redirect: target.href };
  }
  if (status === 429 || status >= 500) return { wait: unavailable(`answered ${status}`) };
  if (status !== 200) throw refusal(unavailable(`answered ${status}`));
  if (contentType === 'text/html' || /^\s*<(?:!doctype|html)/i.test(text)) throw refusal(unavailable('answered with a web page'));
  return { done: text };
}

/** Without user, password and query, which may hold what nobody should see. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function refusal(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}
