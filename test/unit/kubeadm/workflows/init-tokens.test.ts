import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { DefaultedBootstrapToken } from '../../../../src/kubeadm/config/defaults.ts';
import type { BootstrapToken } from '../../../../src/kubeadm/config/model.ts';
import { tokenSecret } from '../../../../src/kubeadm/token/token-secret.ts';
import { type InitTokenOptions, planInitTokens } from '../../../../src/kubeadm/workflows/bootstrap-tokens.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const NOW = new Date('2030-01-01T00:00:00Z');
const GROUP = 'system:bootstrappers:kubeadm:default-node-token';
const stored = (id: string, more: Partial<DefaultedBootstrapToken> = {}) =>
  tokenSecret(
    { token: new Secret(`${id}.0123456789abcdef`), ttl: '1h0m0s', usages: ['signing', 'authentication'], groups: [GROUP], ...more },
    NOW,
  );

async function settle(
  existing: readonly ReturnType<typeof stored>[],
  written: readonly BootstrapToken[] = [],
  change: Partial<InitTokenOptions> = {},
) {
  const reporter = recordingReporter();
  const cluster = fakeCluster({ objects: existing, now: () => NOW });
  const freshTokens = [new Secret('fresh0.0123456789abcdef'), new Secret('fresh1.0123456789abcdef')];
  const context = { host: fakeHost(), cluster, clock: fakeClock(NOW), reporter };
  const tokens = await planInitTokens(context, { bootstrapTokens: written, freshTokens, apiServer: {}, makesTokens: true, ...change });
  return {
    desired: tokens.desired.map(({ secret }) => secret.metadata.name),
    joining: tokens.joining.map((token) => token.reveal().slice(0, 6)),
    reported: reporter.messages('TOKEN_USED'),
    calls: cluster.calls,
  };
}

describe('the tokens of init', () => {
  it('include a generated token when none is configured and none exists', async () => {
    expect(await settle([])).toMatchObject({ desired: ['bootstrap-token-fresh0'], joining: ['fresh0'], reported: [] });
  });

  it('include the existing token with the longest TTL, and report it', async () => {
    const { desired, joining, reported } = await settle([
      stored('aaaaaa'),
      stored('bbbbbb', { ttl: '0s' }),
      stored('cccccc', { ttl: '9h0m0s' }),
    ]);
    expect([desired, joining]).toEqual([[], ['bbbbbb']]);
    expect(reported).toEqual(['using the existing bootstrap token bbbbbb, which never expires']);
    expect((await settle([stored('aaaaaa')])).reported).toEqual([
      'using the existing bootstrap token aaaaaa, which expires at 2030-01-01T01:00:00Z',
    ]);
  });

  it.each([
    ['about to expire', stored('aaaaaa', { ttl: '9m59s' })],
    ['expired', stored('aaaaaa', { expires: '2029-01-01T00:00:00Z' })],
    ['not for signing', stored('aaaaaa', { usages: ['authentication'] })],
    ['not for authentication', stored('aaaaaa', { usages: ['signing'], groups: [] })],
    ['of other groups', stored('aaaaaa', { groups: ['system:bootstrappers:others'] })],
  ])('exclude a token that is %s', async (_, secret) => {
    expect((await settle([secret])).joining).toEqual(['fresh0']);
  });

  it('include configured tokens unchanged, and ignore other tokens', async () => {
    const { desired, joining, calls } = await settle([stored('aaaaaa')], [{ token: new Secret('mine00.0123456789abcdef') }]);
    expect([desired, joining]).toEqual([['bootstrap-token-mine00'], ['mine00']]);
    expect(calls).toEqual([]);
  });

  it('include the token that an earlier run created for an entry without a value', async () => {
    const entry = { description: 'rack 7', groups: [GROUP, 'system:bootstrappers:rack'] };
    expect((await settle([], [entry])).desired).toEqual(['bootstrap-token-fresh0']);
    expect(await settle([stored('aaaaaa'), stored('bbbbbb', entry)], [entry])).toMatchObject({ desired: [], joining: ['bbbbbb'] });
  });

  it('exclude tokens for joining that nodes cannot use', async () => {
    const entry = { token: new Secret('mine00.0123456789abcdef'), usages: ['signing'] };
    expect(await settle([], [entry])).toMatchObject({ desired: ['bootstrap-token-mine00'], joining: [] });
  });

  it('include no generated token when the phase is skipped, but an existing one', async () => {
    expect(await settle([], [], { makesTokens: false })).toMatchObject({ desired: [], joining: [] });
    expect((await settle([stored('aaaaaa')], [], { makesTokens: false })).joining).toEqual(['aaaaaa']);
  });
});
