import { onAbort } from '../base/abort.ts';
import type { ExitCode } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Cluster } from '../kube/cluster.ts';
import { withCluster } from '../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { actOnRollout } from '../rollouts/use-cases/act-on-rollout.ts';
import { listRollouts } from '../rollouts/use-cases/find-rollouts.ts';
import { watchRollouts } from '../rollouts/use-cases/watch-rollouts.ts';
import { VERSION } from '../version.ts';
import type { Services } from './output/services.ts';
import { serveLivePage } from './report/live-page.ts';
import { type RenderedPage, renderPage, renderTexts, visibleValues } from './report/render-report.ts';
import { rolloutsPage } from './report/rollouts-page.ts';

export interface UiRequest {
  readonly cluster: KubeconfigRequest;
  /** 0: a free one. */
  readonly port: number;
  readonly verbosity: number;
}

/** The page has the rights of the kubeconfig: no other host may reach it. */
const LOOPBACK = '127.0.0.1';

/**
 * `ui`: serves the page of all rollouts until it is stopped.
 * @throws AppError PAGE_NOT_SERVED (exit code 2), and the errors of the cluster before a page is served
 */
export async function runUi(services: Services, { cluster: named, port, verbosity }: UiRequest): Promise<ExitCode> {
  const reporter = services.reporter({ verbosity, format: 'text' });
  return withCluster<ExitCode>(
    services,
    named,
    async (cluster) => {
      await listRollouts(cluster);
      const stop = new AbortController();
      const removeListener = onAbort(services.signal, () => stop.abort());
      const { clock } = services;
      const watched = watchRollouts(cluster, { clock, signal: stop.signal, random: () => services.random() });
      try {
        await watched.ready;
        await servePage(services, { cluster, watched, port, reporter });
        return 0;
      } finally {
        stop.abort();
        removeListener();
        await watched.ended();
      }
    },
    reporter,
  );
}

interface ServedPage {
  readonly cluster: Cluster;
  readonly watched: ReturnType<typeof watchRollouts>;
  readonly port: number;
  readonly reporter: Reporter;
}

async function servePage(services: Services, { cluster, watched, port, reporter }: ServedPage): Promise<void> {
  const templates = await services.templates();
  const render = renderedWhenChanged(watched.version, () => renderTexts(rolloutsPage(watched.objects(), cluster, VERSION), templates));
  // The first rendering is much slower than the following ones, and the pause between two depends on it.
  render();
  const page = await serveLivePage(
    services,
    { host: LOOPBACK, port },
    {
      render,
      document: (shown) => renderPage(shown, templates, { isLive: true, acts: true }),
      act: async (request) => {
        const result = await actOnRollout(cluster, request);
        if ('message' in result) reporter.report({ level: 'info', code: 'ROLLOUT_CHANGED', message: result.message });
        return visibleValues(result) as object;
      },
    },
  );
  await watched.ended();
  await page.end();
}

/** Renders again only if the objects have changed. */
function renderedWhenChanged(version: () => number, render: () => RenderedPage): () => RenderedPage {
  let known: { readonly version: number; readonly page: RenderedPage } | null = null;
  return () => {
    if (known?.version !== version()) known = { version: version(), page: render() };
    return known.page;
  };
}
