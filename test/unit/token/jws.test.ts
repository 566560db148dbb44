import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { clusterInfoKubeconfig } from '../../../src/core/config/kubeconfig-render.ts';
import { Secret } from '../../../src/core/text/secret.ts';
import { signDetached } from '../../../src/core/token/jws.ts';

// The certificate of the cluster-info that kubeadm 1.36 shows in a dry run; its signature there is the expected value below.
const CA_BASE64 = `
LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJTkpmdGFCK09Xd0F3RFFZSktvWklodmNOQVFFTEJRQXdGVEVUTUJFR0Ex
VUUKQXhNS2EzVmlaWEp1WlhSbGN6QWVGdzB5TkRBM01EZ3hNalF3TURSYUZ3MHpOREEzTURZeE1qUTFNRFJhTUJVeApFekFSQmdOVkJBTVRDbXQxWW1WeWJt
VjBaWE13Z2dFaU1BMEdDU3FHU0liM0RRRUJBUVVBQTRJQkR3QXdnZ0VLCkFvSUJBUURhUURkaWdPeVdpbTZXLzQ4bjNQSG9WZVZCU2lkNldjbmRFV3VVcTVn
QldYZGx0OTk2aCtWbkl0bHQKOHpDaGwvb1I1V2ZSYVJDODA1WitvTW4vWThJR1ZRM3QxaG55SW1ZbjR3M3Z6UlhvdUdlQmVpdTJTU1ZqZ0J3agpYanliYk1D
bXJBZEljYkllWm1INjZldjV6KzVZS21aUlVZYzNoRGFIcFhkMEVFblp5SlY1d2FaczBYTVFVSE03CmVxT1pBWko5L21PM05VQnBsdnJQbnBPTUs3a1NFUFBn
NzVjVTdXSG9KSEZrZVlXNTkzZ3NnQ3MyQnRVdTY0Y3EKYlZYOWJpZ3JZZGRwWmtvRUtLeFU4SEl3SHNJNVY4Um9uM21LRkdsckUxN2IybC84Q3FtQXVPdnl6
TEllaVFHWAplZ0lhUi9uUkhISUQ5QVRpNnRYOEVhRERwZXYvQWdNQkFBR2pXVEJYTUE0R0ExVWREd0VCL3dRRUF3SUNwREFQCkJnTlZIUk1CQWY4RUJUQURB
UUgvTUIwR0ExVWREZ1FXQkJRWWFDRGU2eXVWcVNhV1Y3M3pMaldtR2hpYVR6QVYKQmdOVkhSRUVEakFNZ2dwcmRXSmxjbTVsZEdWek1BMEdDU3FHU0liM0RR
RUJDd1VBQTRJQkFRQ2NlTW5uaVBhcQpHUkVqR3A2WFJTN1FFWW1RcmJFZCtUVjVKUTE4byttVzZvR3BaOENBM0pBSFFETk5QRW1QYzB5dVhEeE85QkZYCmJn
MlhSSCtLTkozVzJKZlExVEgzVFhKRWF4Zkh1WDRtQjU5UkNsQzExNGtsV2RIeDFqN0FtRWt1eTZ0ZGpuYWkKZmh0U0dueEEwM2JwN2I4Z28zSWpXNE5wV1JO
MVdHNTl2YTBKOEJIRmg3Q0RpZUxuK0RNdUk2M0Jna1kveTJzMApML2RtOVBmcWdVSzFBMy8wZGhDVjZiRUNqekEzSkJld21kSC8rVUJPeVkybUMwNVlQMzNk
MHA5eXlrYmtkWE5xCkRONXlBc3ZNUC9PV0NuQjFlQlFUb2pNODJMU3F3dHZtbU1SNHRXYXVoOXVkVktHY2s0eEJaV3Vkcm5LRFVVWEkKUURNUFJnSkMvTng0
Ci0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K
`;

describe('signDetached', () => {
  it('signs cluster-info as the bootstrap signer does', () => {
    const caPem = Buffer.from(CA_BASE64.replace(/\s/g, ''), 'base64').toString('utf8');
    const payload = clusterInfoKubeconfig({ server: 'https://192.168.0.101:6443', caPem });
    expect(signDetached('abcdef', new Secret('abcdef0123456789'), payload)).toBe(
      'eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..rh3cVKiU2mdt3CqHzC81sNE-4WQLRHMtXduHWfSbrIM',
    );
  });

  it('signs the bytes of the payload: non-ASCII text too', () => {
    const payload = 'größe: ✓\n';
    const [header = '', signature] = signDetached('07401b', new Secret('f395accd246ae52d'), payload).split('..');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'HS256', kid: '07401b' });
    const signed = `${header}.${Buffer.from(payload).toString('base64url')}`;
    expect(signature).toBe(createHmac('sha256', 'f395accd246ae52d').update(signed).digest('base64url'));
  });

  it.each([
    ['the secret', signDetached('abcdef', new Secret('abcdef0123456780'), 'x')],
    ['the id', signDetached('abcdee', new Secret('abcdef0123456789'), 'x')],
    ['the payload', signDetached('abcdef', new Secret('abcdef0123456789'), 'x\n')],
  ])('depends on %s', (_, other) => {
    expect(other).not.toBe(signDetached('abcdef', new Secret('abcdef0123456789'), 'x'));
  });
});
