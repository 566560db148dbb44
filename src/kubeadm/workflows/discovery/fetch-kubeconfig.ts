import { AppError, type Problem } from '../../../base/errors.ts';
import { documentUnavailable } from '../../discovery/discovery-problems.ts';
import { explainFailure } from '../../discovery/explain-failure.ts';
import { type Attempt, type Deadline, type DiscoveryContext, requestTimeoutMs, waitFor } from './wait-for.ts';

const MAX_REDIRECTS = 10;
const MAX_BYTES = 1024 * 1024;

/**
 * Fetches the discovery kubeconfig from an https URL. System CAs of the local host verify the server. Redirects are
 * followed to https URLs only.
 * @throws AppError DISCOVERY_*, exit code 3 for an error that waiting cannot fix, otherwise 1
 * @see kubeadm 1.36 discovery/https, which follows any redirect and accepts every status
 */
export async function fetchKubeconfig(context: DiscoveryContext, deadline: Deadline, url: string): Promise<string> {
  return waitFor(context, deadline, async () => {
    let next = url;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      const result = await fetchOnce(context, deadline, next);
      if (!('redirect' in result)) return result;
      next = result.redirect;
    }
    throw refusal(documentUnavailable(withoutSecrets(url), `more than ${MAX_REDIRECTS} redirects`));
  });
}

async function fetchOnce(
  { web, clock, signal }: DiscoveryContext,
  deadline: Deadline,
  url: string,
): Promise<Attempt<string> | { readonly redirect: string }> {
  const shown = withoutSecrets(url);
  const request = { url, trust: { kind: 'machine' }, timeoutMs: requestTimeoutMs(deadline, clock), maxBytes: MAX_BYTES } as const;
  const answer = await web.get({ ...request, signal });
  if (answer.kind === 'failed') {
    const about = { endpoint: shown, expectedCa: 'a system CA of the local host', clock: { local: clock.now(), remote: null } };
    const { kind, problem } = explainFailure(answer.issue, about);
    if (kind === 'wait') return { retryReason: problem };
    throw refusal(problem);
  }
  const { status, text, location, contentType } = answer;
  const unavailable = (why: string): Problem => documentUnavailable(shown, why);
  if (status >= 300 && status < 400 && location !== null) {
    const target = URL.canParse(location, url) ? new URL(location, url) : null;
    if (target?.protocol !== 'https:') throw refusal(unavailable('the server redirects to a URL that is not https'));
    return { redirect: target.href };
  }
  if (status === 429 || status >= 500) return { retryReason: unavailable(`the server answered ${status}`) };
  if (status !== 200) throw refusal(unavailable(`the server answered ${status}`));
  if (contentType === 'text/html' || /^\s*<(?:!doctype|html)/i.test(text))
    throw refusal(unavailable('the server answered with a web page'));
  return { done: text };
}

/** The URL without user, password and query, which may contain secrets. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function refusal(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 3 });
}
